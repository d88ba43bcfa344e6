#pragma once
// As many gradient frames as a connection takes, sent as the runtime sends them: a window of bytes in the queue, kept
// full by a thread that is none of the transport's.

#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

#include "base/philox.h"
#include "transport/connection.h"
#include "wire/limits.h"

namespace motley::bench {

/// Random bytes: a link that compresses gains nothing.
inline wire::Frame flood_frame(std::uint64_t run) {
  Philox random(1, 2);
  std::vector<std::byte> body(wire::kSegmentBytesMax);
  for (std::byte& byte : body) byte = static_cast<std::byte>(random.next_u32() & 0xFFU);
  wire::FrameHeader header;
  header.type = wire::FrameType::gradient;
  header.run = run;
  return wire::seal(header, SharedBytes::copy_of(body));
}

/// Sends while `more(frames sent so far)`, which is also asked while the queue is full.
template <class More>
void flood(transport::Connection& connection, const wire::Frame& frame, std::size_t window_bytes, More more) {
  constexpr std::chrono::microseconds kPoll{200};
  for (std::uint64_t sent = 0; more(sent);) {
    if (connection.queued_bytes() > window_bytes) {
      std::this_thread::sleep_for(kPoll);
    } else {
      connection.send(frame, transport::Priority::gradients);
      ++sent;
    }
  }
}

}  // namespace motley::bench

#pragma once
// As many gradient frames as a connection takes, as long as those of a run: a window of bytes in the queue, kept full
// by a thread that is none of the transport's.

#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

#include "base/philox.h"
#include "transport/connection.h"
#include "wire/limits.h"

namespace motley::bench {

/// Random bytes: a link that compresses gains nothing.
inline wire::Frame flood_frame(std::uint64_t run, std::size_t bytes) {
  Philox random(1, 2);
  std::vector<std::byte> body(bytes);
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

/// While `more()`. Short frames at first: on a slow link long ones would come too rarely to tell its speed.
template <class More>
void flood_link(transport::Connection& connection, std::uint64_t run, std::size_t window_bytes, More more) {
  constexpr std::uint64_t kShortFrames = 32;
  constexpr std::chrono::milliseconds kFast{250};  // for these: a quarter of a gigabit a second
  const auto began = std::chrono::steady_clock::now();
  flood(connection, flood_frame(run, wire::kSegmentBytesMax), window_bytes,
        [&](std::uint64_t sent) { return sent < kShortFrames && more(); });
  const bool fast = std::chrono::steady_clock::now() - began < kFast;
  flood(connection, flood_frame(run, fast ? wire::kBodyBytesMax : wire::kSegmentBytesMax), window_bytes,
        [&](std::uint64_t /*sent*/) { return more(); });
}

}  // namespace motley::bench

#pragma once
// How the engine's lanes and control messages become frames on connections.

#include <string>

#include "engine/link.h"
#include "transport/connection.h"
#include "wire/frame.h"
#include "wire/messages.h"

namespace motley::runtime {

/// Who ends a session says Bye on the control connection and closes both, and the end of the data connection may arrive
/// first: so long a Bye is waited for.
constexpr Duration kFarewellTime = std::chrono::seconds(1);

/// The data connection ended by itself.
struct DataLaneEnd {
  std::string why;
  Time deadline{};  // then the session is over too
};

inline transport::Priority priority_of(engine::Lane lane) noexcept {
  switch (lane) {
    case engine::Lane::control:
      return transport::Priority::control;
    case engine::Lane::weights:
      return transport::Priority::weights;
    case engine::Lane::gradients:
      return transport::Priority::gradients;
    case engine::Lane::background:
      return transport::Priority::background;
  }
  return transport::Priority::background;
}

/// Among Hello.features: does not compute, and wants files that the head's script offers.
inline constexpr const char* kFiles = "files";

/// A control frame outside any session (fence 0).
inline wire::Frame control_frame(std::uint64_t run, const wire::Message& message) {
  wire::FrameHeader header;
  header.type = wire::FrameType::control;
  header.run = run;
  return wire::seal(header, wire::encode(message));
}

}  // namespace motley::runtime

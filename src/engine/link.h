#pragma once
// What both ends of a session keep to: lanes, times, and the features that a Hello may name.

#include <chrono>
#include <cstdint>

#include "base/time.h"

namespace motley::engine {

/// Frames of one class keep their order; classes may overtake each other (they travel on different connections).
enum class Lane : std::uint8_t { control, weights, gradients, background };

struct Timeouts {
  Duration heartbeat = std::chrono::milliseconds(500);
  Duration silence = std::chrono::milliseconds(1800);    // no byte on any lane: the worker is lost
  Duration loading = std::chrono::seconds(300);          // from session_opened to Ready
  Duration lease_min = std::chrono::milliseconds(1500);  // a lease is overdue after max(this, 3 x predicted)
  Duration lease_unknown = std::chrono::seconds(60);     // likewise before anything was measured
  Duration lease_max = std::chrono::hours(6);            // whatever was measured
};

/// A Hello's feature: not to compute, but to have the files of the run's script.
inline constexpr const char* kFetch = "fetch";

}  // namespace motley::engine

#pragma once
// Time as the pure parts see it: nanoseconds since some start, handed in by whoever drives them.

#include <chrono>

namespace motley {

using Duration = std::chrono::nanoseconds;
using Time = std::chrono::nanoseconds;  // since the start of the process (or of the simulation)

inline double seconds(Duration d) noexcept { return std::chrono::duration<double>(d).count(); }

}  // namespace motley

#pragma once
// Which way a gradient points: 64 sums of some of its elements with random signs (base/count_sketch.h). Bearings of
// two gradients are about as far apart as these are. Value type.

#include <array>

namespace motley::modes {

using Bearing = std::array<float, 64>;

}  // namespace motley::modes

#include <bit>

#include "ps/server.h"

namespace motley::ps {

// By exponent bits, so that the loop is integer work that vectorises and no floating-point flag can change its meaning.
bool all_finite(std::span<const float> values) noexcept {
  std::uint32_t bad = 0;
  for (const float value : values) {
    bad |= static_cast<std::uint32_t>((std::bit_cast<std::uint32_t>(value) & 0x7F800000U) == 0x7F800000U);
  }
  return bad == 0;
}

}  // namespace motley::ps

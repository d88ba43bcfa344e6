#pragma once
// The two sizes of pass of a device that is not to see more (Care::pass_sizes), and how a task is cut into passes of
// these. What is left over goes through several times in a pass of the odd size, and counts once: powers of two, so
// that dividing by them is exact. Pure.

#include <algorithm>
#include <bit>
#include <cstdint>

namespace motley::compute {

struct PassSizes {
  std::uint32_t full = 0, odd = 0;
  bool operator==(const PassSizes&) const = default;
};

constexpr std::uint32_t kOddParts = 8;  // of a full pass, about

/// `group`: samples that nothing cuts, 1 where there are none. Without `repeats` no pass can be filled up.
[[nodiscard]] constexpr PassSizes pass_sizes(std::uint32_t full, std::uint32_t group, bool repeats) noexcept {
  if (group > 1) return {std::max(full / group, 1U) * group, group};
  full = std::max(full, 1U);
  return {full, repeats ? std::bit_floor(std::max(full / kOddParts, 1U)) : 1U};
}

/// The largest full pass of at most `most` samples that leaves little of `batch`.
[[nodiscard]] constexpr std::uint32_t full_pass(std::uint32_t most, std::uint32_t batch, std::uint32_t group) noexcept {
  if (batch <= most) return batch;
  const std::uint32_t passes = (batch + most - 1) / most;
  return std::max(batch / passes / group, 1U) * group;
}

struct PassCut {
  std::uint64_t count = 0;    // samples of the task
  std::uint32_t repeats = 1;  // how often each goes through
};

/// The next pass where `left` samples are left. REQUIRES left > 0.
[[nodiscard]] constexpr PassCut next_pass(std::uint64_t left, PassSizes sizes) noexcept {
  if (left >= sizes.full) return {sizes.full, 1};
  if (left >= sizes.odd) return {sizes.odd, 1};
  const std::uint64_t count = std::bit_floor(left);
  return {count, static_cast<std::uint32_t>(sizes.odd / count)};
}

}  // namespace motley::compute

#pragma once
// The number of a pass: kind:8 | job:16 | number:40. A pass is a set of positions, a kind and a version of the weights.
// Train step t is pass number t; an evaluation carries the version it evaluates.

#include <cstdint>

#include "base/assert.h"
#include "base/batch_plan.h"
#include "motley/task.h"

namespace motley::modes {

struct PassId {
  static constexpr std::uint64_t kNumberMax = (std::uint64_t{1} << 40) - 1;

  PassKind kind = PassKind::train;
  std::uint16_t job = 0;
  std::uint64_t number = 0;
  bool operator==(const PassId&) const = default;

  [[nodiscard]] constexpr std::uint64_t pack() const noexcept {
    MOTLEY_ASSERT(number <= kNumberMax);
    return std::uint64_t{static_cast<std::uint8_t>(kind)} << 56 | std::uint64_t{job} << 40 | number;
  }
  /// The kind may be none of PassKind's when the number came from outside.
  [[nodiscard]] static constexpr PassId unpack(std::uint64_t id) noexcept {
    return {.kind = static_cast<PassKind>(id >> 56),
            .job = static_cast<std::uint16_t>(id >> 40),
            .number = id & kNumberMax};
  }
};

/// Which positions a pass covers. For train passes position p is `order_first + p` of the epoch's sample order.
using PassRange = StepRange;

}  // namespace motley::modes

#pragma once
// Which positions of the sample order each step uses. A batch may change from one step to the next; an epoch goes on
// where it was, so that it still has every sample once. Value type, pure: the run, its resumption and the audit all
// follow from the same few numbers.

#include <cstdint>
#include <span>
#include <vector>

namespace motley {

/// Positions of a pass: position p of it is `order_first + p` of the epoch's sample order.
struct StepRange {
  std::uint64_t epoch = 0;
  std::uint64_t order_first = 0;
  std::uint64_t count = 0;
  bool operator==(const StepRange&) const = default;
};

/// Positions of a step that did not count when that was made, and are still to be used.
struct Owed {
  std::uint64_t step = 0;
  std::uint64_t first = 0, count = 0;
  bool operator==(const Owed&) const = default;
};

/// From `first_step` on steps have `batch` samples.
struct BatchChange {
  std::uint64_t first_step = 0;
  std::uint64_t batch = 0;
  bool operator==(const BatchChange&) const = default;
};

/// The samples that an epoch uses: all, or with `drop_last` those that fill whole batches.
constexpr std::uint64_t used_samples(std::uint64_t samples, std::uint64_t batch, bool drop_last) noexcept {
  return drop_last && batch > 0 && batch <= samples ? samples / batch * batch : samples;
}

class BatchPlan {
 public:
  /// Without changes an epoch has ceil(samples / batch) steps; the last one may be short. A batch beyond the data set
  /// is the data set. REQUIRES samples > 0, batch > 0.
  BatchPlan(std::uint64_t samples, std::uint64_t batch, std::span<const BatchChange> changes = {});

  /// REQUIRES a first step later than 0 and than those of all changes before, batch > 0.
  void change(const BatchChange& change);

  [[nodiscard]] StepRange range(std::uint64_t step) const noexcept;
  /// Samples of a step that is not the last of its epoch.
  [[nodiscard]] std::uint64_t batch(std::uint64_t step) const noexcept { return segment(step).batch; }
  /// The first step of an epoch, if no other change comes.
  [[nodiscard]] std::uint64_t first_step(std::uint64_t epoch) const noexcept;

 private:
  struct Segment {
    std::uint64_t first_step = 0, epoch = 0, position = 0;
    std::uint64_t batch = 0;
  };
  [[nodiscard]] const Segment& segment(std::uint64_t step) const noexcept;
  [[nodiscard]] std::uint64_t steps_of(std::uint64_t samples, std::uint64_t batch) const noexcept;

  std::uint64_t samples_;
  std::vector<Segment> segments_;  // by first_step; never empty
};

}  // namespace motley

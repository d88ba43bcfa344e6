#pragma once
// How far a task goes: the coordinator moves the limit while the device works towards it. What was promised to the
// coordinator holds, because a micro-batch is claimed before it starts. One thread at a time.

#include <cstdint>

namespace motley::compute {

class TaskRange {
 public:
  /// For the next task.
  void reset(std::uint64_t limit) noexcept;
  /// As near to `limit` as still possible: not below what is claimed, as it is once frozen or finished early, 0 once
  /// abandoned. Returns the limit that holds now.
  std::uint64_t set_limit(std::uint64_t limit) noexcept;
  /// The micro-batch that is claimed is the last; none is: abandoned.
  void finish_early() noexcept;
  /// False: the limit is lower by now.
  bool claim(std::uint64_t count) noexcept;
  /// The range is `count` samples for good; from now on it can only be abandoned, since a task that is run again for
  /// lack of memory must send the same samples.
  void freeze(std::uint64_t count) noexcept;
  [[nodiscard]] bool frozen() const noexcept { return frozen_; }
  [[nodiscard]] std::uint64_t limit() const noexcept { return limit_; }

 private:
  std::uint64_t limit_ = 0, claimed_ = 0;
  bool frozen_ = false;
  bool enough_ = false;  // the limit can no longer rise
};

}  // namespace motley::compute

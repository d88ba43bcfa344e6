#pragma once
// What sizes of pass a device gets that must be taken care of (Care), and whether it computes right with them: one pass
// of the full size after one of the odd size, against the sum of passes of the odd size. No other device is needed.
// One thread at a time; the clock is given.

#include <cstdint>
#include <functional>
#include <string>

#include "compute/pass_sizes.h"
#include "compute/task_loop.h"

namespace motley::compute {

struct PassesWanted {
  Care care{};
  std::uint32_t most = 1;   // samples of a pass at most
  std::uint32_t group = 1;  // samples that nothing cuts
  /// Whether the memory has room for a pass of `next` samples; asked after one of `ran`.
  std::function<bool(std::uint32_t ran, std::uint32_t next)> fits{};
  std::function<double()> clock{};  // seconds
};

struct PassesTried {
  PassSizes sizes{};
  double seconds = 0;   // of a full pass
  std::string wrong{};  // how the two differ; empty: they do not, or nothing could be tried
};

/// Full passes take half of what they may at most, so that a device that becomes slower stays below. Of `like` samples,
/// seed and state hold. REQUIRES no task is open. Errors: those of the model where it has no memory or did wrong.
Result<PassesTried> try_passes(TaskLoop& loop, const Layout& layout, const Task& like, const PassesWanted& wanted);

}  // namespace motley::compute

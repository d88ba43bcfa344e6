#pragma once
// What two workers should still move between them while they compute their parts of a pass. Pure.

#include <cstdint>

#include "plan/time_model.h"

namespace motley::plan {

/// One worker's part of a pass under way. Times are seconds since it was granted.
struct Part {
  struct Report {
    std::uint64_t samples = 0;  // done; 0: none came yet
    double at = 0;
  };
  Affine time;                    // of a pass, the wire included
  std::uint64_t micro_batch = 1;  // samples
  std::uint64_t limit = 0;        // samples it is to compute, as things are
  std::uint64_t ceiling = 0;      // samples it can be asked to compute
  Report first, newest;
  double age = 0;  // now
};

/// Seconds from now until the last byte of `samples` of it. What was measured in this part counts beside the model, and
/// so does silence: a micro-batch that should be done and is not was slower than thought.
double remaining(const Part& part, std::uint64_t samples) noexcept;

struct Shift {
  std::uint64_t samples = 0;  // from the late one to the early one; 0: nothing is gained
  double before = 0;          // seconds from now until both are done, as things are
  double after = 0;           // likewise when the samples have moved
};

/// The multiple of `unit` that ends the later of both first. What the late one has started stays with it.
/// REQUIRES unit > 0, micro_batch > 0, models with per_sample > 0 and fixed >= 0, limit <= ceiling.
Shift best_shift(const Part& late, const Part& early, std::uint64_t unit) noexcept;

/// The samples of that shift where it gains enough of the pass; else 0.
std::uint64_t worth_shifting(const Part& late, const Part& early, std::uint64_t unit) noexcept;
/// Likewise to a worker without a part, which sends a whole contribution more. The pass is `age` seconds old.
std::uint64_t worth_helping(const Part& late, const Part& helper, std::uint64_t unit, double age) noexcept;

}  // namespace motley::plan

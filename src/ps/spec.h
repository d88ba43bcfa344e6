#pragma once
// What the server does with a gradient: optimizer, schedule, clipping. Semantics are torch's; formulas cite
// torch.optim.

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "motley/bytes.h"
#include "motley/device_optimizer.h"
#include "motley/result.h"

namespace motley::ps {

using motley::OptimizerKind;

/// One parameter group. Defaults are torch's. `lr` is the base rate, before the schedule's factor.
struct GroupSpec {
  double lr = 1e-3;
  double momentum = 0;    // sgd
  double dampening = 0;   // sgd
  bool nesterov = false;  // sgd
  double weight_decay = 0;
  double beta1 = 0.9;  // adam, adamw
  double beta2 = 0.999;
  double eps = 1e-8;
  bool operator==(const GroupSpec&) const = default;
};

/// An optimizer that somebody else brings. It sees a whole gradient at once and keeps its state itself, so it follows
/// one server, version by version.
class OutsideOptimizer {
 public:
  using State = std::map<std::string, std::vector<SharedBytes>>;  // by name and chunk, as in Snapshot
  virtual ~OutsideOptimizer() = default;
  /// Goes on from the state at `version`; empty at version 0. Errors: input, where it is of another optimizer.
  virtual Status restore(std::uint64_t version, const State& state) = 0;
  [[nodiscard]] virtual State state() = 0;
  /// The weights after a step with these final gradients, all by chunk; statistics chunks are none of its business. The
  /// groups have the numbers of this step. After an error its state is lost.
  virtual Status step(std::span<const GroupSpec> groups, std::span<const SharedBytes> weights,
                      std::span<const SharedBytes> gradients, std::span<MutableBytes> new_weights) = 0;
};

struct OptimizerSpec {
  OptimizerKind kind = OptimizerKind::sgd;
  std::vector<GroupSpec> groups;  // indexed by LayoutEntry::group; at least one
  std::shared_ptr<OutsideOptimizer> outside{};
  std::uint64_t updates_before = 0;  // that its state has seen at version 0; one from outside counts by itself
};

/// Learning rates by group that came from results: they replace those of the schedule from `first_step` on.
struct FollowedRates {
  std::uint64_t first_step = 0;
  std::vector<double> lr;
};

enum class ScheduleKind : std::uint8_t { constant, step, cosine, table };

/// What a schedule that was run ahead gives the groups: row r for the steps [r, r + 1) * steps_per_row, the last row
/// for all that follow. They replace the numbers of the groups.
struct ScheduleTable {
  struct Rates {
    double lr = 0, momentum = 0, beta1 = 0, beta2 = 0;
  };
  std::uint64_t steps_per_row = 1;
  std::size_t groups = 0;
  std::vector<Rates> rates;  // rows x groups
};

/// Learning-rate factor as a function of the step. With warm-up (linear from 1/warmup_steps to 1 over the first
/// warmup_steps steps) the rest of the schedule starts after it.
struct ScheduleSpec {
  ScheduleKind kind = ScheduleKind::constant;
  std::uint64_t warmup_steps = 0;
  std::uint64_t step_size = 1;  // step: multiply by gamma every step_size steps (torch StepLR)
  double gamma = 0.1;
  std::uint64_t total_steps =
      1;                  // cosine: T_max counted after warm-up (torch CosineAnnealingLR); held at the minimum after
  double min_factor = 0;  // cosine: eta_min / lr
  std::shared_ptr<const ScheduleTable> table{};
};

}  // namespace motley::ps

#pragma once
// The steps of a run with helpers, done again as a plain loop from what the ledger says: which positions were computed
// at the version before. The weights of each version must be those of the run. One thread.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "engine/coordinator.h"
#include "sim/computer.h"
#include "sim/plain_sum.h"
#include "sim/reference.h"
#include "sim/scenario.h"

namespace motley::sim {

class HelperReplay {
 public:
  /// REQUIRES run outlives this.
  HelperReplay(const RunSetup& run, const Data& data);
  void head_started(std::uint64_t version);
  /// How far `weights`, after the step, are from those of the same step done again.
  [[nodiscard]] Distance closed(const engine::StepClosed& step, const std::vector<SharedBytes>& weights);

 private:
  [[nodiscard]] PlainSum compute(const engine::StepClosed& step, const engine::CommittedRange& range);

  const RunSetup& run_;
  std::unique_ptr<softmax::SoftmaxRegression> model_;
  compute::TaskLoop loop_;
  BatchPlan batches_;
  std::optional<ps::Server> server_;
  std::map<std::uint64_t, ps::Snapshot> versions_;
};

}  // namespace motley::sim

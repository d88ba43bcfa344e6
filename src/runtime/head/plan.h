#pragma once
// What a run would gain from the machines that join: measures them with real steps of which nothing is kept.

#include <cstdint>
#include <functional>
#include <vector>

#include "fleet/token.h"
#include "runtime/head/train.h"

namespace motley::runtime {

struct PlanOptions {
  TrainOptions train{};  // its run_dir, resume and token of a run are not used; its token file is deleted at the end
  std::vector<std::uint64_t> global_batches{};           // to plan for; empty: that of the run
  double seconds = 10;                                   // to measure, after the last machine joined or left
  std::function<void(const fleet::JoinToken&)> begun{};  // others can join now
};

/// Reports one plan a global batch. The error was not yet told to `sink`.
Status plan(const PlanOptions& options, ModelProvider& provider, report::Sink& sink, StopSource& stop);

}  // namespace motley::runtime

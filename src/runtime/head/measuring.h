#pragma once
// Real steps of which nothing is kept, to find out what a run would be like on the machines that join it.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fleet/token.h"
#include "plan/round_price.h"
#include "runtime/head/train.h"

namespace motley::runtime {

struct MeasuringOptions {
  TrainOptions train{};                                  // its run_dir and resume are not used
  double seconds = 10;                                   // after the last machine joined or left
  std::vector<std::uint64_t> global_batches{};           // to plan for; empty: that of the run
  std::function<void(const fleet::JoinToken&)> begun{};  // others can join now
  bool goes_on = false;                                  // the run itself follows, behind the same door
};

struct Measured {
  struct Batch {
    report::PlanMade exact{};
    std::optional<report::PlanMade> round{};  // of all samples of a round; where there are several devices
  };
  std::vector<Batch> batches{};  // one a global batch
  double exchanged = 0;          // bytes of a step
  std::uint64_t samples = 0;     // of an epoch
  std::uint64_t local_steps = 0;
  plan::RunOutline outline{};
  std::string no_rounds{};  // why this run cannot be made in rounds; empty: it can
  bool overlap = false;     // of the rounds that were asked for
};

/// The error was not yet told to `sink`, which is told who comes and goes.
Result<Measured> measure(const MeasuringOptions& options, ModelProvider& provider, report::Sink& sink,
                         StopSource& stop);

/// As the options ask for.
Result<config::RunConfig> read_config(const TrainOptions& options);

}  // namespace motley::runtime

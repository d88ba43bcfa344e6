#pragma once
// Steps that a worker of the coordinator's own process makes without asking (see Soloist): what it is told, and what it
// hands back, by handles to immutable bytes. Values.

#include <cstdint>
#include <memory>
#include <optional>

#include "base/batch_plan.h"
#include "base/time.h"
#include "motley/result.h"
#include "motley/task.h"
#include "ps/server.h"

namespace motley::engine {

struct DelegatedSteps {
  std::uint64_t number = 0;
  std::uint64_t steps = 0;
  BatchPlan batches;                   // which holds for all of them
  Time opened{};                       // the first step counts from here
  std::shared_ptr<ps::Server> server;  // a fork, at the version of the first step
  LossState state{};
};

struct DelegatedStep {
  std::uint64_t number = 0;  // of the delegation
  std::uint64_t step = 0, samples = 0;
  double weight = 0, loss_sum = 0, gradient_norm = 0, learning_rate = 0;
  double compute_seconds = 0;
  Duration duration{};
  /// Without weights: they are still on the device, and come with a later step or the end.
  ps::Snapshot after;
};

struct DelegationEnd {
  std::uint64_t number = 0;  // of the delegation
  std::optional<Error> failure;
  ps::Snapshot after;  // without weights, unless steps came without
};

}  // namespace motley::engine

#pragma once
// Steps that a worker of this process makes by itself, as the coordinator takes them over: one by one, or several at a
// time where weights stay on a device meanwhile. One thread at a time.

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "cluster/coordinator_machine.h"
#include "engine/head/coordinator.h"
#include "engine/head/noise.h"
#include "engine/head/sessions.h"
#include "engine/head/weights_sender.h"
#include "ps/server.h"

namespace motley::engine {

/// Tells the machine what happened, and does what it wants done.
using Feed = std::function<void(const modes::Event&)>;

class Delegator {
 public:
  /// What it works on, all of which outlives it.
  struct Parts {
    const CoordinatorOptions& options;
    ps::Server& server;
    cluster::CoordinatorMachine& machine;
    Sessions& sessions;
    WeightsSender& weights;
    GradientNoise& noise;
    MeasuredPerformance& performance;
    CoordinatorOutput& output;
  };
  Delegator(const Parts& parts, Feed feed) : parts_(parts), feed_(std::move(feed)) {}

  void delegate(const modes::Action& action, const LossState& state, Time now);
  void step(SessionId session, const DelegatedStep& step, Time now);
  void ended(SessionId session, const DelegationEnd& end);

 private:
  [[nodiscard]] bool open(SessionId session, std::uint64_t number) const;
  /// Takes over the steps of the delegation so far, after which all is as in `after`.
  void take_steps(const Session& session, const ps::Snapshot& after);
  [[nodiscard]] StepClosed describe(const Session& session, const DelegatedStep& step) const;

  Parts parts_;
  Feed feed_;
  std::vector<DelegatedStep> on_device_;  // not taken over, since their weights are still there
};

}  // namespace motley::engine

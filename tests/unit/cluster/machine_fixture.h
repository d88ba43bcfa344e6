#pragma once
// The coordinator's machine, driven by hand.

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "cluster/coordinator_machine.h"
#include "fake_performance.h"

namespace motley::cluster {

/// `happen` answers what the machine asks of its driver, in order.
class MachineTest : public testing::Test {
 protected:
  void start() {
    machine.emplace(config, performance);
    happen(Started{});
  }
  void happen(const Event& event) {
    Actions made;
    machine->decide(event, now, made);
    actions.insert(actions.end(), made.begin(), made.end());
    for (const Action& action : made) {
      if (action.kind == ActionKind::close_step) closing();
      if (action.kind == ActionKind::close_step || action.kind == ActionKind::close_evaluation) happen(PassFinished{});
    }
  }
  virtual void closing() {}
  void join(SessionId session, bool local = false) {
    happen(SessionOpened{session, local});
    happen(WorkerReady{session, session});
    happen(WorkerSynced{session, machine->version()});
  }
  void begin(const Action& grant) {
    happen(LeaseBegun{grant.session, grant.lease, grant.range, static_cast<double>(grant.range.count), 0});
  }
  void deliver(const Action& grant, double largest = 0) {
    begin(grant);
    for (ChunkId chunk = 0; chunk < config.chunks; ++chunk)
      happen(ChunkArrived{grant.session, grant.lease, chunk, {largest, 0}});
  }
  void tick() {
    for (const SessionId session : {1U, 2U, 3U}) machine->heard(session, now);
    happen(Ticked{});
  }
  [[nodiscard]] std::vector<Action> of(ActionKind kind) const {
    std::vector<Action> found;
    std::ranges::copy_if(actions, std::back_inserter(found), [&](const Action& action) { return action.kind == kind; });
    return found;
  }
  [[nodiscard]] std::size_t count(ActionKind kind) const { return of(kind).size(); }
  [[nodiscard]] Action last(ActionKind kind) const {
    const std::vector<Action> found = of(kind);
    EXPECT_FALSE(found.empty());
    return found.empty() ? Action{} : found.back();
  }
  [[nodiscard]] std::vector<Action> of(ActionKind kind, SessionId session) const {
    std::vector<Action> found = of(kind);
    std::erase_if(found, [&](const Action& action) { return action.session != session; });
    return found;
  }

  RunConfig config;
  FakePerformance performance;
  std::optional<CoordinatorMachine> machine;
  Actions actions;
  Time now = std::chrono::seconds(1);
};

/// One worker of the same process, which gets steps to make alone.
class SoloTest : public MachineTest {
 protected:
  SoloTest() {
    config.steps = 12;
    config.train_samples = 48;
    config.global_batch = 12;
    config.chunks = 1;
    config.solo_after = 2;
    performance.shares = FakePerformance::Shares::all_to_the_first;
  }
  /// A worker of the same process and two steps by lease.
  void make(bool local = true) {
    start();
    join(1, local);
    for (int step = 0; step < 2; ++step) by_lease();
  }
  void by_lease() {
    const Action grant = last(ActionKind::grant);
    happen(LeaseBegun{grant.session, grant.lease, grant.range, 12, 0});
    happen(ChunkArrived{grant.session, grant.lease, 0});
  }
  /// A parked worker is measured again.
  void calibrate() {
    tick();
    const Action trial = last(ActionKind::calibrate);
    happen(Calibrated{.session = trial.session, .lease = trial.lease});
  }
  void by_itself(int steps) {
    for (int i = 0; i < steps; ++i) happen(DelegatedStep{delegated().session, delegated().lease});
  }
  void ended(bool failed = false) {
    const Delegation delegation = delegated();
    actions.clear();
    happen(DelegationEnded{delegation.session, delegation.lease, failed});
  }
  /// Somebody who does not pay evaluates version 7, the end of a delegation, while the next one goes on.
  void evaluate_in_background() {
    config.test_samples = 5;
    config.evaluate_every = 7;
    make();
    performance.verdict = {.pays = false, .with = std::chrono::seconds(2), .without = std::chrono::seconds(1)};
    join(2, false);
    by_itself(5);
    ended();
  }
  [[nodiscard]] const Delegation& delegated() const { return machine->delegation().value(); }
};

}  // namespace motley::cluster

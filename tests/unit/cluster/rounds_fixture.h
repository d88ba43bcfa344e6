#pragma once
// The coordinator's machine in rounds, driven by hand.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "machine_fixture.h"

namespace motley::cluster {

/// Two workers, rounds of 4 steps of 8 samples, two chunks.
class RoundsMachineTest : public MachineTest {
 protected:
  RoundsMachineTest() {
    config.steps = 3;
    config.train_samples = 96;
    config.global_batch = 32;
    config.local_steps = 4;
    config.local_batch = 8;
    config.chunks = 2;
    config.min_workers = 2;
  }
  void start() {
    MachineTest::start();
    for (const SessionId session : {1U, 2U}) join(session);
  }
  void join(SessionId session) {
    MachineTest::join(session);
    if (const auto trials = of(ActionKind::calibrate, session); !trials.empty())
      happen(Calibrated{session, trials.back().lease});
  }
  void closing() override { done = machine->coverage().positions() - machine->coverage().missing({}).size(); }
  Action grant(SessionId session) const {
    const auto grants = of(ActionKind::grant, session);
    return grants.empty() ? Action{} : grants.back();
  }
  void push(const Action& of, double largest = 0.01) { deliver(of, largest); }
  void not_finite(const Action& of) {
    happen(ChunkArrived{of.session, of.lease, 0, {.gradient = std::numeric_limits<double>::infinity()}});
  }
  std::ptrdiff_t strikes(WorkerId worker) const {
    return std::ranges::count_if(actions, [worker](const Action& action) {
      return action.reason.code == ReasonCode::strike && action.reason.worker == worker;
    });
  }
  void pass(Duration time) {
    constexpr auto kTick = std::chrono::milliseconds(500);
    for (const Time end = now + time; now < end;) {
      now += kTick;
      tick();
    }
  }

  std::uint64_t done = 0;  // positions of the round that was closed last
};

}  // namespace motley::cluster

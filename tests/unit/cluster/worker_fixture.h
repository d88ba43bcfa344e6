#pragma once
// A worker's machine that is told events, and what it answers.

#include <gtest/gtest.h>

#include <vector>

#include "cluster/worker.h"

namespace motley::cluster {

namespace event = worker_event;
using Kind = WorkerAction::Kind;
using std::chrono::milliseconds;

constexpr std::uint64_t pass_of(std::uint64_t step) { return std::uint64_t{1} << 56 | step; }

class WorkerMachineTest : public testing::Test {
 protected:
  std::vector<Kind> tell(const WorkerEvent& happened) {
    WorkerActions actions;
    machine.decide(happened, now, actions);
    all.assign(actions.begin(), actions.end());
    std::vector<Kind> kinds;
    for (const WorkerAction& action : all) kinds.push_back(action.kind);
    return kinds;
  }
  const WorkerAction& last() const { return all.back(); }
  void join(std::uint64_t version) {
    tell(event::Connected{});
    tell(event::SpecWhole{});
    tell(event::Prepared{});
    tell(event::Admitted{});
    tell(event::VersionWhole{version});
  }
  static wire::Grant grant(std::uint64_t step, std::uint64_t lease, std::uint64_t first = 0, std::uint64_t count = 8) {
    return {pass_of(step), lease, step, 0, 0, first, count};
  }
  static wire::PassOpened opened(std::uint64_t step) { return {pass_of(step), step, 0, 0, 64}; }
  static wire::PassClosed closed(std::uint64_t step) { return {pass_of(step), step + 1}; }

  WorkerMachine machine{{milliseconds(500), milliseconds(1800)}};
  Time now{std::chrono::seconds(10)};
  std::vector<WorkerAction> all;
};

}  // namespace motley::cluster

// Steps that a worker makes without asking, as an order through its engine.

#include <gtest/gtest.h>

#include "session.h"

namespace motley::engine {
namespace {

struct Told {
  std::vector<std::uint64_t> steps;
  int taken = 0;
  std::optional<DelegationEnd> end;
  DelegationEvents events() {
    DelegationEvents events;
    events.step = [this](const DelegatedStep& step, const std::function<void()>& done) {
      steps.push_back(step.step);
      done();
    };
    events.ended = [this](DelegationEnd found) { end = std::move(found); };
    return events;
  }
};

TEST_F(WorkerTest, DelegatedStepsGoToItsComputationAndBack) {
  join(0);
  Told told;
  worker.delegate({.number = 4, .steps = 2, .batches = BatchPlan(100, 16), .server = nullptr}, told.events());
  ASSERT_EQ(out.delegated.size(), 1U);
  EXPECT_EQ(out.delegated[0].number, 4U);
  for (std::uint64_t step = 0; step < 2; ++step) {
    DelegatedStep made;
    made.step = step;
    worker.delegated_step(std::move(made), [&] { ++told.taken; }, now);
  }
  worker.cut(4);
  EXPECT_EQ(out.cut, (std::vector<std::uint64_t>{4}));
  worker.delegation_ended({.number = 4, .failure = {}, .after = {}});
  EXPECT_EQ(told.steps, (std::vector<std::uint64_t>{0, 1}));
  EXPECT_EQ(told.taken, 2);
  EXPECT_EQ(told.end->number, 4U);
}

TEST_F(WorkerTest, ItsSpeedIsLearnedFromDelegatedStepsToo) {
  join(0);
  Told told;
  worker.delegate({.number = 1, .steps = 20, .batches = BatchPlan(100, 16), .server = nullptr}, told.events());
  for (std::uint64_t step = 0; step < 20; ++step) {
    DelegatedStep made;
    made.samples = 16;
    made.compute_seconds = 0.16;
    worker.delegated_step(std::move(made), [] {}, now);
  }
  ASSERT_TRUE(worker.speed().has_value());
  EXPECT_NEAR(worker.speed()->seconds(16), 0.16, 0.01);
}

}  // namespace
}  // namespace motley::engine

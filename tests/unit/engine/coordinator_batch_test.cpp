// A batch that follows the gradient noise.

#include <cmath>
#include <map>

#include "coordinator_fixture.h"

namespace motley::engine {
namespace {

class BatchTest : public CoordinatorTest {
 protected:
  BatchTest() {
    options.train_samples = 500;
    options.global_batch = 16;
    options.steps = 0;
    options.epochs = 4;
    options.min_workers = 2;
    options.shares = {3, 1};
    options.adapt_batch = true;
  }
  /// Each contribution is so long on the wire that larger batches pay.
  void train(Duration wire, double seconds_per_sample) {
    make();
    for (const SessionId session : {1, 2}) join(session, {}, false, seconds_per_sample);
    for (bool worked = true; worked;) {
      worked = false;
      now += wire;
      for (auto& [session, peer] : peers) {
        if (peer.grants.empty() || output.closed.count(session) > 0) continue;
        work(peer);
        worked = true;
      }
    }
  }
};

TEST_F(BatchTest, GrowsAndUsesEverySampleOnce) {
  train(std::chrono::seconds(1000), 0.0625);
  EXPECT_EQ(output.times_finished, 1);
  std::map<std::uint64_t, std::uint64_t> samples;
  BatchPlan plan(500, 16);
  std::uint64_t batch = 16;
  std::uint64_t changes = 0;
  for (const StepClosed& step : output.steps) {
    EXPECT_EQ(step.global_batch, batch);
    EXPECT_EQ(step.samples, plan.range(step.step).count);
    EXPECT_EQ(step.epoch, plan.range(step.step).epoch);
    samples[step.epoch] += step.samples;
    if (!step.batch_change) continue;
    ++changes;
    EXPECT_EQ(step.batch_change->first_step, step.step + 1);
    EXPECT_LE(step.batch_change->batch, 2 * batch);
    batch = step.batch_change->batch;
    plan.change(*step.batch_change);
  }
  EXPECT_GE(changes, 1U);
  EXPECT_GT(batch, 16U);
  EXPECT_LT(output.steps.size(), 4 * 32U) << "an epoch takes fewer steps";
  EXPECT_EQ(samples, (std::map<std::uint64_t, std::uint64_t>{{0, 500}, {1, 500}, {2, 500}, {3, 500}}));
  EXPECT_EQ(coordinator->steps(), output.steps.size());
  EXPECT_DOUBLE_EQ(coordinator->server().learning_rate(0), 0.25 * std::sqrt(static_cast<double>(batch) / 16))
      << "the noise scale is far below the first batch";
}

TEST_F(BatchTest, ARunOfSoManyStepsDoesSoMany) {
  options.steps = 70;
  options.epochs = 0;
  train(std::chrono::seconds(1000), 0.0625);
  EXPECT_EQ(output.steps.size(), 70U);
  EXPECT_GT(output.steps.back().global_batch, 16U);
}

TEST_F(BatchTest, StaysUnlessAsked) {
  options.adapt_batch = false;
  train(std::chrono::seconds(1000), 0.0625);
  EXPECT_EQ(output.steps.size(), 4 * 32U);
  for (const StepClosed& step : output.steps) EXPECT_FALSE(step.batch_change);
}

TEST_F(BatchTest, GoesOnWithTheChangesOfEarlierProcesses) {
  options.adapt_batch = false;
  options.batch_changes = {{3, 100, 2}};
  make(3);
  join(1);
  join(2);
  ASSERT_EQ(peers[1].grants.size(), 1U);
  EXPECT_EQ(peers[1].grants[0].pass_first, 48U);
  EXPECT_EQ(peers[1].grants[0].count, 75U);
  EXPECT_EQ(coordinator->steps(), 3U + 5 + 3 * 5);
}

TEST(RateChanges, TheScheduleGoesBySamplesOrBySteps) {
  const std::vector<BatchChange> changes{{10, 32, 1.5}};
  EXPECT_EQ(rate_changes(16, true, changes)[0].schedule_steps, 2);
  EXPECT_EQ(rate_changes(16, false, changes)[0].schedule_steps, 1);
  EXPECT_EQ(rate_changes(16, false, changes)[0].rate, 1.5);
  EXPECT_EQ(rate_changes(16, false, changes)[0].first_step, 10U);
}

}  // namespace
}  // namespace motley::engine

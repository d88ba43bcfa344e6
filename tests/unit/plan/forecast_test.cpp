#include "plan/forecast.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace motley::plan {
namespace {

MeasuredWorker worker(double per_sample, double exposed, bool remote = false) {
  return {.candidate = {.time = Affine{exposed, per_sample}, .remote = remote},
          .compute = {0, per_sample},
          .exposed_seconds = exposed,
          .codec = "int8",
          .up_bytes_per_second = 1e6};
}

StepOverhead step_overhead(double seconds) {
  StepOverhead seen;
  seen.expect(1);
  for (std::uint32_t pass = 1; pass < 10; ++pass) seen.closed(1 + seconds, pass);
  return seen;
}

TEST(Forecast, SeveralStepsHaveTheFixedCostOfEach) {
  MeasuredWorker each = worker(0.001, 0.4);
  each.compute.fixed = 0.1;
  each.candidate.time->fixed = 0.5;
  each.add_steps(29);
  EXPECT_NEAR(each.compute.seconds(1000), 30 * 0.1 + 1, 1e-9);
  EXPECT_NEAR(each.candidate.time->seconds(1000), 30 * 0.1 + 0.4 + 1, 1e-9) << "but the wire once";
}

TEST(Forecast, IsOfThoseWhoShareAndThoseWhoWait) {
  const std::vector<MeasuredWorker> members{worker(0.001, 0), worker(0.001, 0.1, true)};
  const std::vector<MeasuredWorker> parked{worker(0.001, 2, true)};
  const Forecast made = forecast({.request = {.total = 1000, .grain = 10, .link_seconds = 0.05},
                                  .members = members,
                                  .parked = parked,
                                  .link_seconds = 0.04},
                                 step_overhead(0.1), 9);
  EXPECT_NEAR(made.step.seconds, 0.65, 1e-9);
  EXPECT_NEAR(made.step.samples_per_second, 1000 / 0.65, 1e-6);
  EXPECT_NEAR(made.step.update_seconds, 0.1, 1e-9);
  EXPECT_NEAR(made.step.link_seconds, 0.04, 1e-9);
  ASSERT_EQ(made.workers.size(), 3U);
  EXPECT_EQ(made.workers[0].samples, 550U);
  EXPECT_NEAR(made.workers[0].alone_samples_per_second, 1000, 1e-6);
  EXPECT_NEAR(made.workers[0].compute_seconds, 0.55, 1e-9);
  EXPECT_NEAR(made.workers[0].least_step_seconds, 0.11, 1e-9);
  EXPECT_NEAR(made.workers[1].least_step_seconds, 0.21, 1e-9);
  EXPECT_EQ(made.workers[1].codec, "int8");
  EXPECT_EQ(made.workers[1].up_bytes_per_second, 1e6);
  EXPECT_FALSE(made.workers[1].down_bytes_per_second);
  EXPECT_EQ(made.workers[2].samples, 0U);
  EXPECT_EQ(made.workers[2].compute_seconds, 0);
  EXPECT_NEAR(made.workers[2].least_step_seconds, 2.11, 1e-9);
}

TEST(Forecast, AStepWithAShareForWhoHasNoneIsNotShorter) {
  const std::vector<MeasuredWorker> members{worker(0.001, 0)}, parked{worker(0.5, 0)};
  const Forecast made =
      forecast({.request = {.total = 10, .grain = 1}, .members = members, .parked = parked}, step_overhead(0), 9);
  EXPECT_NEAR(made.workers[1].least_step_seconds, 0.5, 1e-9);
  const Forecast longer =
      forecast({.request = {.total = 1000, .grain = 1}, .members = members, .parked = parked}, step_overhead(0), 9);
  EXPECT_NEAR(longer.workers[1].least_step_seconds, longer.step.seconds, 1e-9);
}

TEST(Forecast, WhoMakesStepsAloneWasMeasuredAtIt) {
  std::vector<MeasuredWorker> members{worker(0.001, 0.3)};
  members[0].alone_seconds = 1.1;
  const Forecast made = forecast({.request = {.total = 1000}, .members = members, .parked = {}}, step_overhead(0.2), 9);
  EXPECT_NEAR(made.step.seconds, 1.1, 1e-9);
  EXPECT_EQ(made.step.update_seconds, 0);
  EXPECT_EQ(made.workers[0].exposed_seconds, 0) << "nothing goes by wire";
  EXPECT_NEAR(made.workers[0].alone_samples_per_second, 1000 / 1.1, 1e-6);
  EXPECT_NEAR(made.workers[0].compute_seconds, 1, 1e-9);
  members[0].alone_seconds = 0.1;  // its passes by lease were slower
  const Forecast faster =
      forecast({.request = {.total = 1000}, .members = members, .parked = {}}, step_overhead(0.2), 9);
  EXPECT_NEAR(faster.workers[0].compute_seconds, 0.1, 1e-9) << "no more than the step";
}

TEST(LostSamples, AreThoseThatTheFixedTimeWouldHaveHeld) {
  const std::array passes{Affine{0.1, 0.001}, Affine{0.02, 0.01}};
  EXPECT_NEAR(lost_samples(passes, 0.05), 150 + 7, 1e-9);
  EXPECT_NEAR(lost_samples(passes, -0.05), 100 + 2, 1e-9) << "others helped to end passes sooner";
}

}  // namespace
}  // namespace motley::plan

#include "runtime/head/plan_modes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley::runtime {
namespace {

using testing::HasSubstr;

// Of 10 s the fast device computes 8 and the slow one 4; a third is left out.
report::PlanMade plan() {
  report::PlanMade made;
  made.step_s = 10;
  made.samples_per_s = 25;
  made.shares = {{.worker = "fast", .samples = 200, .alone_samples_per_s = 30, .compute_s = 8},
                 {.worker = "slow", .samples = 50, .alone_samples_per_s = 10, .compute_s = 4},
                 {.worker = "out", .alone_samples_per_s = 10}};
  return made;
}

TEST(PlanModes, WeighComputingBySpeed) {
  const ModeOutlook found = outlook_of(plan(), 30, 5e6);
  EXPECT_DOUBLE_EQ(found.computing, (30 * 8 + 10 * 4) / (50.0 * 10));
  EXPECT_DOUBLE_EQ(found.bytes_a_day, 5e6 * 8640);
  EXPECT_EQ(found.samples_per_s, 25);
}

TEST(PlanModes, SayWhatEachCosts) {
  const std::string exact = line_of(outlook_of(plan(), 0, 5e6), true);
  EXPECT_THAT(exact, HasSubstr("exact"));
  EXPECT_THAT(exact,
              HasSubstr("25 samples/s, computes 56 % of the time, 43.2 GB a day; the mathematics of one machine"));
  const std::string rounds = line_of(outlook_of(plan(), 30, 5e8), true);
  EXPECT_THAT(rounds, HasSubstr("rounds of 30 steps"));
  EXPECT_THAT(rounds, HasSubstr("4.3 TB a day; final loss likely 0.5 to 1.5 % above exact"));
  EXPECT_THAT(line_of(outlook_of(plan(), 30, 5e3), false),
              HasSubstr("43 MB a day; what it costs in quality is not tested"));
}

TEST(PlanModes, KnowNothingOfNoTime) {
  EXPECT_EQ(outlook_of(report::PlanMade(), 30, 5e6).bytes_a_day, 0);
  EXPECT_EQ(outlook_of(report::PlanMade(), 30, 5e6).computing, 0);
}

}  // namespace
}  // namespace motley::runtime

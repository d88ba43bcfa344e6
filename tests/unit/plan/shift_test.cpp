#include "plan/shift.h"

#include <gtest/gtest.h>

namespace motley::plan {
namespace {

/// 0.1 s before the first sample and after the last one together, 10 ms each; four samples a micro-batch.
Part part(std::uint64_t limit, std::uint64_t ceiling) {
  return {.time = {0.1, 0.01}, .micro_batch = 4, .limit = limit, .ceiling = ceiling, .first = {}, .newest = {}};
}

TEST(Remaining, FollowsTheModelWhileNothingIsKnown) {
  Part fresh = part(100, 100);
  EXPECT_NEAR(remaining(fresh, 100), 1.1, 1e-9);
  fresh.age = 0.12;
  EXPECT_NEAR(remaining(fresh, 100), 0.98, 1e-9);
}

TEST(Remaining, ReportsCountMoreTheMoreTheyAre) {
  Part slow = part(100, 100);
  slow.first = slow.newest = {4, 0.14};
  slow.age = 0.14;
  EXPECT_NEAR(remaining(slow, 100), 0.96, 1e-9) << "as predicted";
  slow.newest = {8, 0.22};  // half as fast since then
  slow.age = 0.22;
  const double little_known = remaining(slow, 100);
  EXPECT_GT(little_known, 1.15);
  EXPECT_LT(little_known, 92 * 0.02 + 0.1);
  slow.newest = {80, 0.14 + 76 * 0.02};
  slow.age = slow.newest.at;
  EXPECT_NEAR(remaining(slow, 100), 20 * 0.02, 0.05);
}

TEST(Remaining, TheFirstReportSaysWhatTheFixedTimeLeavesOpen) {
  Part part_ = part(100, 100);
  part_.first = part_.newest = {4, 1.0};  // much later than any fixed time explains
  part_.age = 1.0;
  EXPECT_GT(remaining(part_, 100), 96 * 0.2);
  part_.first = part_.newest = {4, 0.02};  // sooner than the model has it
  part_.age = 0.02;
  EXPECT_LT(remaining(part_, 100), 96 * 0.006 + 0.11);
}

TEST(Remaining, SilenceIsSlowness) {
  Part silent = part(100, 100);
  silent.first = {4, 0.14};
  silent.newest = {20, 0.30};
  silent.age = 0.32;
  const double soon = remaining(silent, 100);
  EXPECT_LT(soon, 1.0);
  silent.age = 0.70;  // 400 ms for a micro-batch that takes 40 ms
  EXPECT_GT(remaining(silent, 100), 76 * 0.1 - 0.1);
}

TEST(Shift, MovesWhatEndsBothSooner) {
  Part late = part(100, 199);
  Part early = part(100, 199);
  EXPECT_EQ(best_shift(late, early, 4).samples, 0U) << "they are alike";
  late.first = {4, 0.14};
  late.newest = {12, 0.30};  // half as fast
  early.first = {4, 0.14};
  early.newest = {20, 0.30};
  late.age = early.age = 0.30;
  const Shift shift = best_shift(late, early, 4);
  EXPECT_GT(shift.samples, 0U);
  EXPECT_EQ(shift.samples % 4, 0U);
  EXPECT_LT(shift.after, shift.before);
  EXPECT_EQ(best_shift(early, late, 4).samples, 0U);
}

TEST(Shift, LeavesWhatIsStartedAndHeedsTheCeiling) {
  Part late = part(20, 20);
  late.newest = late.first = {12, 10};
  late.age = 10;
  EXPECT_EQ(best_shift(late, part(0, 100), 4).samples, 4U) << "16 of 20 are started";
  late.limit = 16;
  EXPECT_EQ(best_shift(late, part(0, 100), 4).samples, 0U);
  late.limit = 100;
  EXPECT_EQ(best_shift(late, part(40, 50), 4).samples, 8U);
}

TEST(Shift, IsWorthItWhereItGainsEnough) {
  struct Case {
    double slower;  // the late one, in its newest reports
    bool shifting, helping;
  };
  for (const auto& [slower, shifting, helping] : {Case{1.02, false, false}, Case{2, true, true}}) {
    Part late = part(100, 199);
    late.first = {4, 0.14};
    late.newest = {52, 0.14 + 0.48 * slower};
    late.age = late.newest.at;
    Part early = part(100, 199);
    early.first = {4, 0.14};
    early.age = late.age;
    early.newest.at = early.age - 0.01;
    early.newest.samples = 4 + static_cast<std::uint64_t>((early.newest.at - 0.14) / 0.01);
    EXPECT_EQ(worth_shifting(late, early, 4) > 0, shifting) << slower;
    EXPECT_EQ(worth_helping(late, part(0, 100), 4, late.age) > 0, helping) << slower;
    EXPECT_EQ(worth_helping(late, part(0, 100), 4, 100), 0U) << "little of so long a pass";
    early.newest.samples = 100;
    EXPECT_EQ(worth_shifting(late, early, 4), 0U) << "its contribution has begun";
  }
}

}  // namespace
}  // namespace motley::plan

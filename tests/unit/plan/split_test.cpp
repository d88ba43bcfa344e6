#include "plan/split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace motley::plan {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using Speeds = std::vector<std::optional<double>>;
using Counts = std::vector<std::uint64_t>;

TEST(Speed, IsEmptyBeforeTheFirstRecord) {
  Speed speed;
  EXPECT_FALSE(speed.samples_per_second());
  EXPECT_FALSE(speed.predict(10));
  speed.record(0, 1s);
  speed.record(10, 0s);
  EXPECT_FALSE(speed.samples_per_second());
}

TEST(Speed, TakesTheFirstRecordWhole) {
  Speed speed;
  speed.record(200, 2s);
  EXPECT_DOUBLE_EQ(*speed.samples_per_second(), 100);
  EXPECT_EQ(*speed.predict(50), 500ms);
}

TEST(Speed, AveragesTheTimePerSample) {
  Speed speed;
  speed.record(100, 1s);
  speed.record(100, 2s);
  EXPECT_NEAR(seconds(*speed.predict(100)), 0.7 * 1 + 0.3 * 2, 1e-9);
}

TEST(Speed, AHiccupCountsAsThreeTimesTheMean) {
  Speed speed;
  speed.record(100, 1s);
  speed.record(100, 60s);
  EXPECT_NEAR(seconds(*speed.predict(100)), 0.7 * 1 + 0.3 * 3, 1e-9);
  for (int i = 0; i < 20; ++i) speed.record(100, 1s);
  EXPECT_NEAR(seconds(*speed.predict(100)), 1, 1e-2);
}

TEST(Speed, ASlowDeviceIsBelievedAtTheSecondRecord) {
  Speed speed;
  speed.record(100, 1s);
  for (int i = 0; i < 5; ++i) speed.record(100, 10s);
  EXPECT_GT(seconds(*speed.predict(100)), 7);
}

TEST(Speed, AnIdleWorkerIsTriedAgainInTheEnd) {
  Speed fast;
  Speed slow;
  fast.record(100, std::chrono::milliseconds(100));
  slow.record(1, std::chrono::milliseconds(500));
  const auto share = [&] {
    const std::array<std::optional<double>, 2> speeds{fast.samples_per_second(), slow.samples_per_second()};
    return split(100, 1, speeds).counts[1];
  };
  EXPECT_EQ(share(), 0U);
  int passes = 0;
  for (; share() == 0 && passes < 1000; ++passes) slow.idle();
  EXPECT_EQ(share(), 1U);
  EXPECT_GT(passes, 100);
}

TEST(Speed, PredictionsStayInRange) {
  Speed speed;
  speed.record(1, 1000h);
  EXPECT_GT(*speed.predict(~std::uint64_t{0}), 0s);
}

TEST(Split, IsProportionalOnTheGrain) {
  EXPECT_THAT(split(1024, 32, Speeds{4.0, 3.0, 1.0}).counts, ElementsAre(512, 384, 128));
  EXPECT_THAT(split(1000, 32, Speeds{1.0, 1.0}).counts, ElementsAre(512, 488));
  EXPECT_THAT(split(10, 1, Speeds{1.0, 1.0, 1.0}).counts, ElementsAre(4, 3, 3));
  EXPECT_THAT(split(0, 32, Speeds{1.0, 2.0}).counts, ElementsAre(0, 0));
  EXPECT_THAT(split(7, 32, Speeds{1.0}).counts, ElementsAre(7));
}

TEST(Split, ASlowWorkerThatWouldHoldUpTheRestGetsNothing) {
  EXPECT_THAT(split(256, 32, Speeds{1000.0, 5.0}).counts, ElementsAre(256, 0));
  // A fraction of 0.55 would round to one, and the pass would take 1.0 instead of 0.6.
  EXPECT_THAT(split(6, 1, Speeds{10.0, 1.0}).counts, ElementsAre(6, 0));
}

TEST(Split, UnmeasuredWorkersTakeTheMean) {
  const Shares shares = split(300, 1, Speeds{50.0, std::nullopt, 150.0});
  EXPECT_THAT(shares.counts, ElementsAre(50, 100, 150));
  EXPECT_THAT(shares.reason, HasSubstr("1 not measured yet"));
  const Shares equal = split(300, 1, Speeds{std::nullopt, std::nullopt, std::nullopt});
  EXPECT_THAT(equal.counts, ElementsAre(100, 100, 100));
  EXPECT_THAT(equal.reason, HasSubstr("equal shares"));
}

TEST(Split, NonsenseSpeedsCountAsUnmeasured) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_THAT(split(90, 1, Speeds{nan, -1.0, 30.0}).counts, ElementsAre(30, 30, 30));
  EXPECT_THAT(split(90, 1, Speeds{infinite, 0.0, 30.0}).counts, ElementsAre(30, 30, 30));
}

TEST(Split, KeepsSharesForSmallGains) {
  const Counts previous{500, 500};
  const Shares kept = split(1000, 1, Speeds{51.0, 50.0}, previous);
  EXPECT_EQ(kept.counts, previous);
  EXPECT_THAT(kept.reason, HasSubstr("kept"));
  const Shares moved = split(1000, 1, Speeds{60.0, 40.0}, previous);
  EXPECT_THAT(moved.counts, ElementsAre(600, 400));
  EXPECT_THAT(moved.reason, HasSubstr("20.0 % sooner"));
}

TEST(Split, IgnoresPreviousSharesThatDoNotFit) {
  const Speeds speeds{50.0, 50.0};
  EXPECT_THAT(split(1000, 1, speeds, Counts{500, 499}).counts, ElementsAre(500, 500));
  EXPECT_THAT(split(1000, 1, speeds, Counts{501, 500}).counts, ElementsAre(500, 500));
  EXPECT_THAT(split(1000, 1, speeds, Counts{500, 499, 1}).counts, ElementsAre(500, 500));
  EXPECT_THAT(split(1024, 32, speeds, Counts{511, 513}).counts, ElementsAre(512, 512));
  const auto huge = ~std::uint64_t{0};
  EXPECT_THAT(split(1000, 1, speeds, Counts{huge, 1001}).counts, ElementsAre(500, 500));
}

TEST(Split, ANewcomerIsTakenInAtOnce) {
  const Shares shares = split(1000, 1, Speeds{50.0, std::nullopt}, Counts{1000, 0});
  EXPECT_THAT(shares.counts, ElementsAre(500, 500));
}

}  // namespace
}  // namespace motley::plan

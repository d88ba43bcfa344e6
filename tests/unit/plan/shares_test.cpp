#include "plan/shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace motley::plan {
namespace {

using testing::ElementsAre;
using Counts = std::vector<std::uint64_t>;

constexpr std::array<std::uint64_t, 2> kTwo{1, 2};

std::vector<Candidate> speeds(double first, double second, double spread = 0) {
  return {{.time = Affine{0, 1 / first}, .spread = spread}, {.time = Affine{0, 1 / second}, .spread = spread}};
}

TEST(Shares, ASmallGainIsTakenWhenItWasThereManyTimes) {
  struct Case {
    const char* what;
    double gain;  // of the faster one over the mean
    int splits;   // until its share is larger
  };
  for (const Case& each : {Case{"at once", 0.05, 1}, Case{"no noise", 0.02, 5}, Case{"never", 0.005, -1}}) {
    Shares shares;
    shares.split({.total = 10'000}, speeds(1, 1), kTwo, false);
    int splits = 0;
    const auto counts = [&](bool again) {
      return shares.split({.total = 10'000}, speeds(1 + each.gain, 1 - each.gain), kTwo, again).counts;
    };
    do {
      EXPECT_NE(counts(true)[0], 5000U) << "what was lost is split as is best";
    } while (++splits < 20 && counts(false)[0] == 5000);
    EXPECT_EQ(splits, each.splits < 0 ? 20 : each.splits) << each.what;
  }
}

TEST(Shares, StayOnlyForTheSamePass) {
  Shares shares;
  EXPECT_THAT(shares.split({.total = 100}, speeds(1, 1), kTwo, false).counts, ElementsAre(50, 50));
  const std::vector<Candidate> unlike = speeds(1.02, 0.98);
  EXPECT_THAT(shares.split({.total = 100}, unlike, kTwo, false).counts, ElementsAre(50, 50));
  EXPECT_THAT(shares.split({.total = 100}, unlike, std::array<std::uint64_t, 2>{1, 3}, false).counts,
              ElementsAre(51, 49));
  EXPECT_THAT(shares.split({.total = 200}, unlike, kTwo, false).counts, ElementsAre(102, 98));
  EXPECT_EQ(shares.total(), 200U);
}

TEST(Shares, WhoseTimeVariesIsDoneALittleEarlier) {
  struct Case {
    double first, second, spread;  // speeds
    double longer_first, longer_second;
  };
  // Who does half of the work or more may as well be the last one.
  for (const Case& each : {Case{1, 1, 0.1, 1, 1}, Case{3, 1, 0.1, 1, 1 + 3 * 0.25 * 0.125}, Case{3, 1, 0, 1, 1}}) {
    const std::vector<Candidate> candidates = speeds(each.first, each.second, each.spread);
    const std::vector<Candidate> safe = allowing_for_spread(candidates);
    EXPECT_NEAR(safe[0].time->per_sample * each.first, each.longer_first, 1e-12);
    EXPECT_NEAR(safe[1].time->per_sample * each.second, each.longer_second, 1e-12);
  }
  EXPECT_FALSE(allowing_for_spread(std::vector<Candidate>(1))[0].time);
}

TEST(Shares, AreRoundedForWhoHasPassesOfAFewSizes) {
  struct Case {
    const char* what;
    Counts counts, units, rounded;
    std::uint64_t grain = 1;
  };
  for (const Case& each :
       {Case{"nobody", {37, 63}, {1, 1}, {37, 63}}, Case{"down", {34, 66}, {8, 1}, {32, 68}},
        Case{"up", {38, 62}, {8, 1}, {40, 60}}, Case{"less than one", {5, 95}, {8, 1}, {8, 92}},
        Case{"too little for one", {3, 97}, {8, 1}, {3, 97}}, Case{"no share", {0, 100}, {8, 1}, {0, 100}},
        Case{"of the largest", {10, 70, 20}, {8, 1, 1}, {8, 72, 20}}, Case{"all of them", {35, 65}, {8, 8}, {32, 68}},
        Case{"whom it would cost its share", {15, 1}, {16, 1}, {15, 1}},
        Case{"the end of a pass", {28, 69}, {1, 8}, {28, 69}, 4},
        Case{"on the grain", {56, 41}, {12, 1}, {60, 37}, 4}}) {
    Counts counts = each.counts;
    round_shares(counts, each.units, each.grain);
    EXPECT_EQ(counts, each.rounded) << each.what;
  }
}

TEST(Shares, APassIsExpectedToEndWithItsSlowestOrItsLink) {
  const std::vector<Candidate> candidates{{.time = Affine{0, 0.001}},
                                          {.time = Affine{0.01, 0.001}, .remote = true, .wait = 0.02},
                                          {.time = Affine{0.01, 0.001}, .remote = true, .wait = 0.02},
                                          {}};
  struct Case {
    double link;
    Counts counts;
    std::size_t senders;
    double seconds;
  };
  for (const Case& each :
       {Case{0, {100, 0, 0, 0}, 0, 0.1}, Case{0, {100, 95, 0, 0}, 1, 0.105}, Case{0, {100, 95, 50, 0}, 2, 0.125},
        Case{0.1, {100, 95, 50, 0}, 2, 0.2}, Case{0.1, {100, 0, 0, 1}, 0, 0}}) {
    EXPECT_EQ(senders(candidates, each.counts), each.senders);
    EXPECT_NEAR(expected_seconds(each.link, candidates, each.counts), each.seconds, 1e-12);
  }
  EXPECT_FALSE(measured(candidates));
  EXPECT_TRUE(measured(speeds(1, 1)));
}

}  // namespace
}  // namespace motley::plan

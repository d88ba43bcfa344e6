#include "plan/verdicts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace motley::plan {
namespace {

Candidate candidate(double fixed, double per_sample, double wait = -1) {
  return {.time = Affine{fixed, per_sample}, .remote = wait >= 0, .wait = std::max(0.0, wait)};
}

TEST(Judge, WhoEndsThePassAHundredthSoonerPays) {
  struct Case {
    const char* what;
    Candidate mine;
    std::vector<Candidate> others;
    std::optional<double> alone;
    bool pays;
    double with, without;
  };
  const std::vector<Candidate> one{candidate(0, 0.001)};
  const std::vector<Candidate> three{candidate(0, 0.001), candidate(0, 0.001, 0.05), candidate(0, 0.001, 0.05)};
  for (const Case& each : std::vector<Case>{
           {"a twin", candidate(0, 0.001), one, {}, true, 0, 0},
           {"a little help", candidate(0, 0.02), one, {}, true, 0, 0},
           {"too little to be worth its energy", candidate(0, 0.2), one, {}, false, 0.996, 1},
           {"a step is over before its link is through", candidate(1.2, 0.001), one, {}, false, 1.201, 1},
           {"the other makes steps alone in less", candidate(0, 0.001), one, 0.4, false, 0.5, 0.4},
           {"its link is its own", candidate(0, 0.001, 0), three, {}, true, 0, 0},
           {"its contribution holds up two others", candidate(0.2, 0.001, 0.1), three, {}, false, 0.401, 0.367},
       }) {
    const double link = each.mine.wait;
    const Verdict verdict = judge({.total = 1000, .link_seconds = link}, each.others, each.mine, each.alone);
    EXPECT_EQ(verdict.pays, each.pays) << each.what;
    EXPECT_NEAR(verdict.with, each.with, 0.001) << each.what;
    EXPECT_NEAR(verdict.without, each.without, 0.001) << each.what;
  }
}

/// So many passes of a second each, the first eight of which do not count.
Comparison after(int passes) {
  Comparison comparison;
  for (int i = 0; i < 8; ++i) comparison.closed(3, false);
  for (int i = 0; i < passes; ++i) comparison.closed(1, true);
  return comparison;
}

TEST(Comparison, TheLargerALossTheFewerPassesShowIt) {
  struct Case {
    double alone;
    int passes;  // 0: never
  };
  for (const auto& [alone, least] : {Case{0.7, 3}, Case{0.93, 3}, Case{0.97, 7}, Case{0.999, 16}, Case{1, 0}}) {
    int passes = 0;
    while (passes < 40 && after(passes).compare(100, alone, {}).pays) ++passes;
    EXPECT_EQ(passes, least == 0 ? 40 : least) << alone;
  }
  const Verdict verdict = after(16).compare(100, 0.7, {});
  EXPECT_NEAR(verdict.with, 1, 1e-9);
  EXPECT_EQ(verdict.without, 0.7);
}

TEST(Comparison, WhereNobodyWasAloneAGainMayBeInDoubt) {
  struct Case {
    const char* what;
    std::optional<double> computes;
    int passes;
    bool pays;
  };
  for (const Case& each : {Case{"nothing is known", {}, 20, true}, Case{"a clear gain", 1.3, 20, true},
                           Case{"a small one", 1.2, 16, false}, Case{"for which it is too soon", 1.2, 15, true},
                           Case{"a loss", 0.9, 7, false}}) {
    Comparison comparison = after(each.passes);
    const Verdict verdict = comparison.compare(100, {}, each.computes);
    EXPECT_EQ(verdict.pays, each.pays) << each.what;
    EXPECT_EQ(verdict.without, 0) << each.what;
    EXPECT_TRUE(comparison.resolve(100, {}).pays) << "it was not alone yet";
    EXPECT_TRUE(comparison.resolve(50, 0.9).pays) << "another batch";
    EXPECT_TRUE(comparison.resolve(100, 1.1).pays) << "alone it takes longer";
    EXPECT_EQ(comparison.resolve(100, 0.9).pays, each.pays) << each.what;
  }
}

TEST(Comparison, OtherPassesAreComparedAnew) {
  Comparison comparison = after(16);
  comparison.begin();
  EXPECT_TRUE(comparison.compare(100, 0.7, {}).pays) << "no pass since";
  for (int i = 0; i < 3; ++i) comparison.closed(0.6, true);
  EXPECT_TRUE(comparison.compare(100, 0.7, {}).pays) << "those before do not count";
}

}  // namespace
}  // namespace motley::plan

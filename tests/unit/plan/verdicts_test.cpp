#include "plan/verdicts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/philox.h"

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
constexpr std::uint64_t kTotal = 100;

Comparison after(int passes) {
  Comparison comparison;
  for (int i = 0; i < 8; ++i) comparison.closed(3, false);
  for (int i = 0; i < passes; ++i) comparison.closed(1, true);
  return comparison;
}

/// After a block of steps alone, of which the first is cold.
Verdict answer(Comparison& comparison, double alone, int steps = 8) {
  comparison.interrupted();
  comparison.alone(9);
  for (int i = 1; i < steps; ++i) comparison.alone(alone);
  return comparison.resolve(kTotal);
}

TEST(Comparison, TheLargerALossTheFewerPassesShowIt) {
  struct Case {
    double alone;
    int passes;  // 0: never
    bool clear;
  };
  for (const auto& [alone, least, clear] :
       {Case{0.7, 3, true}, Case{0.93, 3, false}, Case{0.97, 7, false}, Case{0.999, 16, false}, Case{1, 0, false}}) {
    int passes = 0;
    while (passes < 40 && after(passes).compare(kTotal, alone, {}).pays) ++passes;
    EXPECT_EQ(passes, least == 0 ? 40 : least) << alone;
    if (least == 0) continue;
    EXPECT_EQ(after(passes).compare(kTotal, alone, {}).without, clear ? alone : 0) << alone;
  }
  EXPECT_NEAR(after(16).compare(kTotal, 0.7, {}).with, 1, 1e-9);
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
    const Verdict verdict = after(each.passes).compare(kTotal, {}, each.computes);
    EXPECT_EQ(verdict.pays, each.pays) << each.what;
    EXPECT_EQ(verdict.without, 0) << each.what;
  }
}

TEST(Comparison, ABlockAloneTells) {
  const auto doubted = [] {
    Comparison comparison = after(16);
    EXPECT_FALSE(comparison.compare(kTotal, {}, 1.2).pays);
    return comparison;
  };
  Comparison comparison = doubted();
  EXPECT_TRUE(comparison.resolve(kTotal).pays) << "nobody was alone";
  comparison = doubted();
  EXPECT_TRUE(comparison.resolve(kTotal / 2).pays) << "another batch";
  comparison = doubted();
  EXPECT_TRUE(answer(comparison, 0.9, 2).pays) << "too few steps";
  comparison = doubted();
  EXPECT_TRUE(answer(comparison, 1.1).pays) << "alone it takes longer";
  comparison = doubted();
  const Verdict verdict = answer(comparison, 0.9);
  EXPECT_FALSE(verdict.pays);
  EXPECT_NEAR(verdict.with, 1, 1e-9);
  EXPECT_NEAR(verdict.without, 0.9, 1e-9);
}

TEST(Comparison, WhatMayBeChanceIsComparedWithPassesBehindTheDoubt) {
  Comparison comparison = after(16);
  EXPECT_FALSE(comparison.compare(kTotal, 0.98, {}).pays);
  EXPECT_TRUE(answer(comparison, 0.98).pays) << "those before are slower than usual";
  for (int i = 0; i < 15; ++i) comparison.closed(1, true);
  EXPECT_TRUE(comparison.compare(kTotal, 0.98, {}).pays);
  comparison.closed(1, true);
  const Verdict verdict = comparison.compare(kTotal, 0.98, {});
  EXPECT_FALSE(verdict.pays);
  EXPECT_NEAR(verdict.with, 1, 1e-9);
  EXPECT_NEAR(verdict.without, 0.98, 1e-9);
}

TEST(Comparison, OtherPassesAreComparedAnew) {
  Comparison comparison = after(16);
  comparison.begin();
  EXPECT_TRUE(comparison.compare(kTotal, 0.7, {}).pays) << "no pass since";
  for (int i = 0; i < 3; ++i) comparison.closed(0.6, true);
  EXPECT_TRUE(comparison.compare(kTotal, 0.7, {}).pays) << "those before do not count";
}

TEST(Comparison, WhoWasFoundToPayIsNotAskedAgainForLong) {
  Comparison comparison = after(16);
  EXPECT_FALSE(comparison.compare(kTotal, 0.99, {}).pays);
  EXPECT_TRUE(answer(comparison, 1.2).pays);
  int passes = 0;
  do comparison.closed(1, true), ++passes;
  while (passes < 1000 && comparison.compare(kTotal, 0.99, {}).pays);
  EXPECT_EQ(passes, 64);
}

/// A run in which passes take 1 s and steps alone 1 + gain, both with this noise (Gaussian, of one duration) and a
/// drift that both share. What it knows of steps alone was measured in the beginning, in eight of them.
struct Outcome {
  bool parked = false;
  int passes = 0, alone = 0;
};
Outcome run(double gain, double noise, double drift, std::uint64_t seed) {
  Philox random(seed);
  Outcome found;
  double age = 0;
  const auto duration = [&](double mean) {
    return mean * (1 + noise * random.gaussian()) * (1 + drift * age++ / 1000);
  };
  double known = 0;
  for (int i = 0; i < 8; ++i) known += duration(1 + gain) / 8;
  Comparison comparison;
  while (found.passes < 1000) {
    comparison.closed(duration(1), true);
    ++found.passes;
    const Verdict verdict = comparison.compare(kTotal, known, {});
    if (verdict.pays) continue;
    found.parked = verdict.without > 0;
    if (found.parked) return found;
    comparison.interrupted();
    double sum = 0;
    for (int i = 0; i < 8; ++i) {
      const double step = duration(1 + gain);
      comparison.alone(step);
      sum += step / 8;
    }
    known = sum;
    found.alone += 8;
    found.parked = !comparison.resolve(kTotal).pays;
    if (found.parked) return found;
  }
  return found;
}

TEST(Comparison, OfAHundredRunsNinetyNineAreRight) {
  struct Case {
    double gain, noise, drift;
    bool pays;
  };
  for (const Case& each :
       {Case{0.03, 0.05, 0, true}, Case{0.03, 0.05, 0.1, true}, Case{0.03, 0.01, 0.2, true}, Case{0.2, 0.05, 0.2, true},
        Case{-0.03, 0.05, 0.2, false}, Case{-0.03, 0.01, 0, false}, Case{-0.2, 0.05, 0, false}}) {
    int right = 0;
    double cost = 0;
    for (std::uint64_t seed = 1; seed <= 400; ++seed) {
      const Outcome found = run(each.gain, each.noise, each.drift, seed);
      right += found.parked != each.pays ? 1 : 0;
      // Of the time of the run: what the steps alone took longer.
      cost += each.pays ? each.gain * found.alone / (found.alone + found.passes) : 0;
    }
    EXPECT_GE(right, 396) << "a gain of " << each.gain << " in a noise of " << each.noise << ", drift " << each.drift;
    EXPECT_LE(cost / 400, 0.01) << each.gain;
  }
}

}  // namespace
}  // namespace motley::plan

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "sim/simulation.h"

namespace motley::sim {
namespace {

std::string failures_of(const Report& report) {
  std::string text;
  for (const std::string& failure : report.failures) text += failure + "\n";
  return text;
}

constexpr std::uint64_t kSeeds = 20;  // of hundreds that `.ci/run sim` tries, some with each disturbance

class Rounds : public testing::TestWithParam<std::uint64_t> {};

// Each sample once, and each version the one that the same rounds give when they are done again.
TEST_P(Rounds, KeepTheirPromisesWhateverFails) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Scenario scenario = make_scenario(seed);
    make_rounds(scenario, GetParam());
    const Report report = simulate(scenario);
    EXPECT_TRUE(report.ok()) << failures_of(report) << "replay: sim --seed " << seed << " --rounds " << GetParam()
                             << " --trace";
  }
}

// Likewise where they begin before the one before has travelled.
TEST_P(Rounds, ThatOverlapKeepTheirPromisesToo) {
  std::uint64_t overlapped = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    for (const bool faulty : {false, true}) {
      Scenario scenario = make_scenario(seed);
      make_rounds(scenario, GetParam(), true);
      if (faulty) add_fault(scenario);
      const Report report = simulate(scenario);
      overlapped += report.measured.overlapped;
      EXPECT_TRUE(report.ok()) << failures_of(report) << "replay: sim --seed " << seed << " --rounds " << GetParam()
                               << " --overlap " << (faulty ? "--faulty " : "") << "--trace";
    }
  }
  EXPECT_EQ(overlapped > 0, GetParam() > 1);
}

TEST_P(Rounds, AFaultyWorkerDoesNoHarm) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Scenario scenario = make_scenario(seed);
    make_rounds(scenario, GetParam());
    add_fault(scenario);
    const Report report = simulate(scenario);
    EXPECT_TRUE(report.ok()) << failures_of(report) << "replay: sim --seed " << seed << " --rounds " << GetParam()
                             << " --faulty --trace";
  }
}

TEST_P(Rounds, InFewBitsEachSampleCountsOnce) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Scenario scenario = make_scenario(seed, 0, {wire::CodecId::int4, wire::CodecId::int8});
    make_rounds(scenario, GetParam());
    const Report report = simulate(scenario);
    EXPECT_TRUE(report.ok()) << failures_of(report) << "replay: sim --seed " << seed << " --rounds " << GetParam()
                             << " --gradients int4 --weights int8 --trace";
  }
}

INSTANTIATE_TEST_SUITE_P(OfSteps, Rounds, testing::Values(1, 2, 5));

}  // namespace
}  // namespace motley::sim

// Who lies in its gradients is out soon, by the part of the time that second looks have by default.

#include <gtest/gtest.h>

#include "sim/simulation.h"

namespace motley::sim {
namespace {

constexpr std::uint64_t kLiarSeeds[] = {5, 7, 9};

Report with_liar(std::uint64_t seed, Fault fault, std::uint64_t steps, bool skewed = false) {
  Scenario scenario = make_scenario(seed, steps);
  scenario.verify = 0.005;
  make_liar(scenario, fault, 1);
  scenario.run.skewed = skewed;
  Report report = simulate(scenario);
  EXPECT_TRUE(report.ok()) << report.failures.front();
  EXPECT_EQ(report.sound_struck, 0U);
  return report;
}

class Liars : public testing::TestWithParam<Fault> {};

TEST_P(Liars, AreOutInFiftyOfTheirSteps) {
  for (const std::uint64_t seed : kLiarSeeds) {
    const Report report = with_liar(seed, GetParam(), 150);
    EXPECT_TRUE(report.liar_out) << "seed " << seed;
    EXPECT_LE(report.liar_steps, 50U) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Gradients, Liars, testing::Values(Fault::negated, Fault::outdated),
                         [](const auto& param) { return std::string(to_word(param.param)); });

TEST(Skewed, WhoseSharesAreOfOtherClassesIsLookedAtAndStays) {
  std::uint64_t verified = 0;
  for (const std::uint64_t seed : kLiarSeeds) verified += with_liar(seed, Fault::none, 300, true).verified;
  EXPECT_GT(verified, 0U);
}

}  // namespace
}  // namespace motley::sim

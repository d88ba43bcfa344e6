#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "sim/simulation.h"

namespace motley::sim {
namespace {

std::string all_of(const Report& report) {
  std::string text;
  for (const std::string& failure : report.failures) text += failure + "\n";
  return text;
}

constexpr std::uint64_t kSeedsOfHelpers = 40;  // of hundreds that `.ci/run sim` tries

std::uint64_t run_seeds(bool faulty, Codecs codecs, std::uint64_t steps) {
  std::uint64_t early = 0;
  for (std::uint64_t seed = 1; seed <= kSeedsOfHelpers; ++seed) {
    Scenario scenario = make_scenario(seed, steps, codecs);
    make_helpers(scenario);
    if (faulty) add_fault(scenario);
    const Report report = simulate(scenario);
    early += report.measured.early;
    EXPECT_TRUE(report.ok()) << all_of(report) << "replay: sim --seed " << seed << " --helpers"
                             << (faulty ? " --faulty" : "") << " --trace";
  }
  return early;
}

// Each sample once in its own step, and the weights those of the same steps done again.
TEST(Helpers, KeepTheirPromisesWhateverFails) { EXPECT_GT(run_seeds(false, {}, 0), 0U); }
TEST(Helpers, ThatAreFaultyDoNoHarm) { EXPECT_GT(run_seeds(true, {}, 0), 0U); }
TEST(Helpers, InFewBitsEachSampleCountsOnce) {
  EXPECT_GT(run_seeds(false, {wire::CodecId::int8, wire::CodecId::int8}, 0), 0U);
}

TEST(Helpers, ThatWereSaidToComputeAtTheVersionOfTheStepAreFound) {
  std::uint64_t with_help = 0, found = 0;
  for (std::uint64_t seed = 1; seed <= kSeedsOfHelpers; ++seed) {
    Scenario scenario = make_scenario(seed);
    make_helpers(scenario);
    if (simulate(scenario).measured.early == 0) continue;
    ++with_help;
    if (!simulate(scenario, {.print = {}, .sabotage = Sabotage::hide_early}).ok()) ++found;
  }
  EXPECT_GT(found, with_help / 2) << "of " << with_help << "; in some, steps are too short to tell";
}

TEST(Helpers, OfASeedComeToTheSameTrace) {
  Scenario scenario = make_scenario(3);
  make_helpers(scenario);
  EXPECT_EQ(simulate(scenario).trace_hash, simulate(scenario).trace_hash);
}

}  // namespace
}  // namespace motley::sim

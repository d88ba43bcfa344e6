#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "sim/simulation.h"

namespace motley::sim {
namespace {

constexpr std::uint64_t kSeedsOfChains = 40;  // of hundreds that `sim --chain` tries

/// Sums that came to the head.
std::uint64_t sums_of_seeds(bool faulty, Codecs codecs, double verify) {
  std::uint64_t sums = 0;
  for (std::uint64_t seed = 1; seed <= kSeedsOfChains; ++seed) {
    Scenario scenario = make_scenario(seed, 40, codecs);
    scenario.verify = verify;
    if (faulty) add_fault(scenario);
    make_chain(scenario);
    const Report report = simulate(scenario);
    sums += report.sums;
    std::string wrong;
    for (const std::string& failure : report.failures) wrong += failure + "\n";
    EXPECT_TRUE(report.ok()) << wrong << "replay: sim --seed " << seed << " --steps 40 --chain"
                             << (faulty ? " --faulty" : "") << " --trace";
  }
  return sums;
}

TEST(Chains, KeepTheirPromisesWhateverFails) { EXPECT_GT(sums_of_seeds(false, {}, 0), 0U); }
TEST(Chains, WithOneThatIsFaultyComeToTheSame) { EXPECT_GT(sums_of_seeds(true, {}, 0), 0U); }
TEST(Chains, AddUpInFewerBits) {
  EXPECT_GT(sums_of_seeds(false, {wire::CodecId::int8, wire::CodecId::int8}, 0), 0U);
  EXPECT_GT(sums_of_seeds(true, {std::nullopt, std::nullopt}, 0), 0U);
}
TEST(Chains, BearSecondLooks) { EXPECT_GT(sums_of_seeds(false, {}, 0.5), 0U); }

}  // namespace
}  // namespace motley::sim

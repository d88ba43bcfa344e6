// What many workers cost: the links that they share, and that a chain of many holds.

#include "sim/scale.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <utility>
#include <vector>

namespace motley::sim {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

TEST(SharedLinks, ThoseWhoSendToOneTakeTurnsAndShortFramesGoBetween) {
  EventQueue queue;
  SharedLinks links(queue, 3, 1e6, std::chrono::milliseconds(1));
  const SharedBytes large = SharedBytes::copy_of(std::vector<std::byte>(100'000 - wire::kHeaderBytes));
  std::vector<std::pair<std::size_t, int>> arrived;  // from whom, tenths of a second
  std::map<std::size_t, SharedLinks::Stream> streams;
  for (const std::size_t from : {1U, 2U})
    streams[from] = links.open(from, 0, [&, from](const wire::Frame&) {
      arrived.emplace_back(from, static_cast<int>(seconds(queue.now()) * 10));
    });
  for (int i = 0; i < 2; ++i)
    for (const std::size_t from : {1U, 2U}) links.send(streams[from], {.header = {}, .body = large});
  const SharedLinks::Stream word = links.open(2, 0, [&](const wire::Frame&) { arrived.emplace_back(9, 0); });
  links.send(word, {});
  while (queue.step()) {
  }
  EXPECT_THAT(arrived, ElementsAre(Pair(9, 0), Pair(1, 1), Pair(2, 2), Pair(1, 3), Pair(2, 4)));
  EXPECT_EQ(links.carried(0).in, 400'000 + wire::kHeaderBytes);
  EXPECT_EQ(links.carried(1).out, 200'000U);
}

double models(std::uint64_t bytes, const ScaleSetup& setup) {
  return static_cast<double>(bytes) / (4.0 * static_cast<double>(setup.parameters));
}

TEST(Scale, AStarCarriesAModelForEachAndAChainOfWeightsOne) {
  ScaleSetup setup{.workers = 3, .parameters = 1 << 20, .bytes_per_second = 10e6};
  const ScaleReport star = run_scaled(setup);
  ASSERT_TRUE(star.finished);
  EXPECT_THAT(star.news, IsEmpty());
  EXPECT_NEAR(models(star.head.back().out, setup), 3, 0.05);
  EXPECT_NEAR(models(star.head.back().in, setup), 3, 0.05);
  setup.chain = engine::CoordinatorOptions::Chain::weights;
  const ScaleReport chain = run_scaled(setup);
  ASSERT_TRUE(chain.finished);
  EXPECT_THAT(chain.news, IsEmpty());
  EXPECT_NEAR(models(chain.head.back().out, setup), 1, 0.05);
  EXPECT_LT(chain.steps.back(), star.steps.back() + 0.1);
}

TEST(Scale, AChainBothWaysCarriesAModelInAndOneOut) {
  const ScaleSetup setup{
      .workers = 3, .parameters = 1 << 20, .bytes_per_second = 10e6, .chain = engine::CoordinatorOptions::Chain::both};
  const ScaleReport chain = run_scaled(setup);
  ASSERT_TRUE(chain.finished);
  EXPECT_THAT(chain.news, IsEmpty());
  EXPECT_NEAR(models(chain.head.back().out, setup), 1, 0.05);
  EXPECT_NEAR(models(chain.head.back().in, setup), 1, 0.05);
}

// Four gradients over one link, in steps that compute for a second: three times a hop's way and back.
TEST(Scale, WhereWaysAreTriedItComesToTheFastest) {
  ScaleSetup setup{.workers = 4,
                   .parameters = 1 << 20,
                   .bytes_per_second = 10e6,
                   .steps = 50,
                   .chain = engine::CoordinatorOptions::Chain::both};
  const ScaleReport both = run_scaled(setup);
  setup.chain = engine::CoordinatorOptions::Chain::measured;
  const ScaleReport tried = run_scaled(setup);
  ASSERT_TRUE(both.finished && tried.finished);
  EXPECT_THAT(tried.news, IsEmpty());
  EXPECT_NEAR(tried.steps.back(), both.steps.back(), 0.01 * both.steps.back());
  EXPECT_NEAR(models(tried.head.back().in, setup), 1, 0.05);
  const double all = std::accumulate(tried.steps.begin(), tried.steps.end(), 0.0);
  EXPECT_LT(all, std::accumulate(both.steps.begin(), both.steps.end(), 0.0) + 11 * both.steps.back());
}

TEST(Scale, AChainHoldsWhereTheHopsTakeMoreThanASecond) {
  const ScaleSetup setup{.workers = 16,
                         .parameters = 1 << 18,
                         .bytes_per_second = 0.8e6,
                         .steps = 5,
                         .chain = engine::CoordinatorOptions::Chain::weights};
  const ScaleReport report = run_scaled(setup);
  ASSERT_TRUE(report.finished);
  EXPECT_THAT(report.news, IsEmpty());
  EXPECT_NEAR(models(report.head.back().out, setup), 1, 0.2) << "with hashes and words";
}

}  // namespace
}  // namespace motley::sim

// What many workers cost: the links that they share.

#include "sim/scale.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
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

TEST(Scale, TheHeadsLinkCarriesAModelForEachWorkerBothWays) {
  const ScaleSetup setup{.workers = 3, .parameters = 1 << 20, .bytes_per_second = 10e6};
  const ScaleReport report = run_scaled(setup);
  ASSERT_TRUE(report.finished);
  EXPECT_THAT(report.news, IsEmpty());
  EXPECT_NEAR(models(report.head.back().out, setup), 3, 0.05);
  EXPECT_NEAR(models(report.head.back().in, setup), 3, 0.05);
}

}  // namespace
}  // namespace motley::sim

#include "modes/rounds/round_stock.h"

#include <gtest/gtest.h>

#include <numeric>

#include "modes/rounds/round_plan.h"

namespace motley::modes {
namespace {

fleet::Stock stock(std::uint64_t first, std::uint64_t count, std::uint64_t epoch = 0) {
  return {.all = false, .epoch = epoch, .first = first, .count = count};
}

TEST(Reach, IsWhatThereIsAtTheBeginningAndAtTheEnd) {
  const std::vector<StepRange> round{{0, 100, 40}};
  EXPECT_TRUE(reach({}, round).whole());
  EXPECT_TRUE(reach(stock(90, 60), round).whole());
  const Reach front = reach(stock(60, 50), round);
  EXPECT_EQ(front.front, 10U);
  EXPECT_EQ(front.back, 0U);
  EXPECT_EQ(front.interval(), (Interval{0, 10}));
  const Reach back = reach(stock(130, 500), round);
  EXPECT_EQ(back.front, 0U);
  EXPECT_EQ(back.back, 10U);
  EXPECT_EQ(back.interval(), (Interval{30, 10}));
  EXPECT_EQ(reach(stock(110, 10), round).most(), 0U) << "in the middle";
  EXPECT_EQ(reach(stock(0, 500, 1), round).most(), 0U) << "of another epoch";
  EXPECT_EQ(reach(stock(0, 0), round).most(), 0U);
  EXPECT_EQ(reach(stock(~std::uint64_t{0}, ~std::uint64_t{0}), round).most(), 0U);
  EXPECT_EQ(reach(stock(0, ~std::uint64_t{0}), round).most(), 40U);
}

TEST(Reach, GoesOnOverWhatIsOwed) {
  const std::vector<StepRange> round{{0, 80, 10}, {1, 0, 40}};
  EXPECT_EQ(reach(stock(0, 40, 1), round).interval(), (Interval{10, 40}));
  EXPECT_EQ(reach(stock(60, 30), round).interval(), (Interval{0, 10}));
  EXPECT_EQ(reach(stock(80, 5), round).interval(), (Interval{0, 5}));
  EXPECT_TRUE(reach({}, round).whole());
}

TEST(RoundStock, SlicesLieWhereTheirWorkersHaveAll) {
  // Samples that each would have; who has all, only the beginning, only the end.
  const std::uint64_t total = 240, unit = 8;
  const std::vector<Reach> reaches{{total, total, total}, {0, 50, total}, {37, 0, total}, {0, 100, total}};
  const std::vector<std::size_t> order = placed(reaches);
  EXPECT_EQ(order, (std::vector<std::size_t>{2, 0, 3, 1}));
  std::vector<Reach> sorted;
  for (const std::size_t i : order) sorted.push_back(reaches[i]);
  std::vector<std::uint64_t> counts{60, 60, 60, 60};
  fit(counts, sorted, unit);
  EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}), total);
  const std::vector<Interval> parts = slices(counts, unit);
  for (std::size_t i = 0; i < parts.size(); ++i) EXPECT_TRUE(parts[i].within(sorted[i].interval())) << i;
  EXPECT_EQ(parts[0], (Interval{0, 32}));
  EXPECT_EQ(parts[3], (Interval{192, 48}));
}

TEST(RoundStock, WhereAllHaveAllNothingMoves) {
  const std::vector<Reach> reaches(3, Reach{90, 90, 90});
  EXPECT_EQ(placed(reaches), (std::vector<std::size_t>{0, 1, 2}));
  std::vector<std::uint64_t> counts{10, 50, 30};
  fit(counts, reaches, 8);
  EXPECT_EQ(counts, (std::vector<std::uint64_t>{10, 50, 30}));
}

}  // namespace
}  // namespace motley::modes

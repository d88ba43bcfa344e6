#include "engine/head/asked.h"

#include <gtest/gtest.h>

#include <limits>

#include "engine/head/line_budget.h"

namespace motley::engine {
namespace {

constexpr Time at(int seconds) { return std::chrono::seconds(seconds); }

TEST(Asked, BelievesAsMuchTimeAsHasPassed) {
  Asked asked;
  asked.add({7, 1, 100, at(10)});
  const Asked::Lease& lease = *asked.find(7);
  const Duration slack = std::chrono::seconds(1);
  EXPECT_EQ(lease.took(100, 3.0, at(15), slack), 3.0);
  EXPECT_EQ(lease.took(100, 1e308, at(15), slack), 6.0);
  EXPECT_EQ(lease.took(100, 1e-300, at(15), slack), 100 * Asked::kSecondsPerSampleMin);
  for (const double none : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(),
                            std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()})
    EXPECT_FALSE(lease.took(100, none, at(15), slack)) << none;
}

TEST(Asked, ForgetsTheOldestOfMany) {
  Asked asked;
  for (std::uint64_t lease = 1; lease <= Asked::kMost + 1; ++lease) asked.add({lease, 1, 1, at(1)});
  EXPECT_EQ(asked.find(1), nullptr);
  EXPECT_NE(asked.find(2), nullptr);
  EXPECT_EQ(asked.find(9999), nullptr);
}

TEST(LineBudget, SomeAtOnceThenOneNowAndThen) {
  LineBudget budget;
  std::string text = "x";
  for (std::uint32_t i = 0; i < LineBudget::kAtOnce; ++i) EXPECT_TRUE(budget.take(text, at(1)));
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(budget.take(text, at(2)));
  EXPECT_TRUE(budget.take(text, at(12)));
  EXPECT_EQ(text, "x (5 lines like it were left out)");
  EXPECT_FALSE(budget.take(text, at(13)));
  std::string later = "y";
  for (std::uint32_t i = 0; i < LineBudget::kAtOnce; ++i) EXPECT_TRUE(budget.take(later, at(1000))) << i;
  EXPECT_FALSE(budget.take(later, at(1000)));
}

}  // namespace
}  // namespace motley::engine

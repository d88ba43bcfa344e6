#include "report/screen.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace motley::report {
namespace {

std::size_t columns(const std::string& text) {
  std::size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1 : 0;
  return count;
}

TEST(ProgressBar, HasItsWidthAtEveryFraction) {
  for (int i = 0; i <= 100; ++i) EXPECT_EQ(columns(progress_bar(i / 100.0, 17)), 17U) << i;
}

TEST(ProgressBar, FillsFromLeftToRight) {
  EXPECT_EQ(progress_bar(0, 4), "────");
  EXPECT_EQ(progress_bar(0.5, 4), "━━──");
  EXPECT_EQ(progress_bar(0.625, 4), "━━╸─");
  EXPECT_EQ(progress_bar(1, 4), "━━━━");
}

TEST(ProgressBar, BearsNonsense) {
  EXPECT_EQ(progress_bar(7, 4), "━━━━");
  EXPECT_EQ(progress_bar(-1, 4), "────");
  EXPECT_EQ(progress_bar(std::numeric_limits<double>::quiet_NaN(), 4), "────");
}

TEST(Sparkline, ShowsTheShapeOfTheValues) {
  EXPECT_EQ(sparkline(std::vector<double>{3, 2, 1}, 10), "█▅▁");
  EXPECT_EQ(sparkline(std::vector<double>{}, 10), "");
  EXPECT_EQ(sparkline(std::vector<double>{1, 1}, 10), "▁▁");
}

TEST(Sparkline, AveragesWhatDoesNotFit) {
  const std::vector<double> many(1000, 2.0);
  EXPECT_EQ(columns(sparkline(many, 28)), 28U);
  EXPECT_EQ(sparkline(std::vector<double>{4, 4, 0, 0}, 2), "█▁");
}

TEST(Duration, IsSaidInTheLargestTwoUnits) {
  EXPECT_EQ(duration_text(0.4), "0 s");
  EXPECT_EQ(duration_text(59.4), "59 s");
  EXPECT_EQ(duration_text(185), "3 min 05 s");
  EXPECT_EQ(duration_text(7800), "2 h 10 min");
  EXPECT_EQ(duration_text(-1), "?");
}

TEST(Fit, CutsAtColumnsNotAtBytes) {
  EXPECT_EQ(fit("━━━━", 2), "━━");
  EXPECT_EQ(fit("abc", 5), "abc");
  EXPECT_EQ(fit("abc", 0), "");
}

}  // namespace
}  // namespace motley::report

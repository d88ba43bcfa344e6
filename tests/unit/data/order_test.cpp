#include "data/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

namespace motley::data {
namespace {

struct Golden {
  std::uint64_t seed, epoch, size;
  std::vector<std::uint64_t> first;
  std::uint64_t last;
};

// docs/formats/order.md
const std::vector<Golden>& golden_orders() {
  static const std::vector<Golden> vectors{
      {0, 0, 1, {0}, 0},
      {1, 0, 10, {1, 6, 8, 9, 7, 3, 0, 4}, 5},
      {42, 3, 60000, {3939, 2160, 26186, 28917, 18036, 42354, 57357, 53612}, 11422},
      {0xFEDCBA9876543210U,
       0x100000002U,
       1000003,
       {197028, 585174, 597045, 238637, 80846, 385747, 996795, 614551},
       230554},
      {7,
       2,
       300000000000U,
       {170304218135U, 163340173676U, 93207157715U, 135026884525U, 144703201266U, 20459290258U, 266384659660U,
        77170602384U},
       61881768457U},
      {7,
       1,
       SampleOrder::kSizeMax,
       {878918916262U, 23786275290U, 661342886285U, 622219174032U, 381979033718U, 81165702593U, 608658739696U,
        293005096807U},
       632403486166U}};
  return vectors;
}

TEST(SampleOrder, MatchesTheGoldenVectors) {
  for (const Golden& vector : golden_orders()) {
    const SampleOrder order(vector.seed, vector.epoch, vector.size);
    std::vector<std::uint64_t> filled(vector.first.size());
    order.fill(0, filled);
    EXPECT_EQ(filled, vector.first) << "size " << vector.size;
    EXPECT_EQ(order.at(vector.size - 1), vector.last) << "size " << vector.size;
  }
}

TEST(SampleOrder, WithoutShuffleIsTheIdentity) {
  const SampleOrder order(1, 2, 1000, false);
  std::vector<std::uint64_t> filled(1000);
  order.fill(0, filled);
  std::vector<std::uint64_t> expected(1000);
  std::iota(expected.begin(), expected.end(), 0U);
  EXPECT_EQ(filled, expected);
}

TEST(SampleOrder, VisitsEverySampleOnceWhereTheTableEnds) {
  // 4^14 and one more: the last size with a table, the first without; every position beyond the first is checked by the
  // golden_orders vectors and properties, here the neighbourhood of both ends is free of repetitions.
  for (const std::uint64_t size : {std::uint64_t{1} << 28, (std::uint64_t{1} << 28) + 1}) {
    const SampleOrder order(5, 6, size);
    std::vector<std::uint64_t> seen(40000);
    order.fill(0, std::span(seen).first(20000));
    order.fill(size - 20000, std::span(seen).last(20000));
    std::sort(seen.begin(), seen.end());
    EXPECT_LT(seen.back(), size);
    EXPECT_EQ(std::adjacent_find(seen.begin(), seen.end()), seen.end());
  }
}

TEST(SampleOrder, PlacesEverySampleEverywhereEquallyOften) {
  constexpr std::uint64_t kSize = 7;
  constexpr int kEpochs = 14000;
  std::array<std::array<int, kSize>, kSize> counts{};
  for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const SampleOrder order(9, epoch, kSize);
    for (std::uint64_t position = 0; position < kSize; ++position) ++counts[position][order.at(position)];
  }
  double chi_square = 0;
  for (const auto& row : counts) {
    for (const int count : row) chi_square += (count - 2000.0) * (count - 2000.0) / 2000.0;
  }
  EXPECT_LT(chi_square, 80.0);  // 36 degrees of freedom: beyond 80 with probability 3e-5; the seed is fixed
}

TEST(SampleOrder, NeighboursAreUnrelated) {
  constexpr std::uint64_t kSize = 60000;
  std::vector<std::uint64_t> samples(kSize);
  SampleOrder(3, 4, kSize).fill(0, samples);
  double sum = 0;
  for (std::size_t i = 1; i < kSize; ++i) {
    sum += (static_cast<double>(samples[i]) - kSize / 2.0) * (static_cast<double>(samples[i - 1]) - kSize / 2.0);
  }
  const double correlation = sum / kSize / (kSize * static_cast<double>(kSize) / 12.0);
  EXPECT_LT(std::abs(correlation), 0.02);
}

TEST(SampleOrder, SeedAndEpochEachChangeTheOrder) {
  const auto first_samples = [](std::uint64_t seed, std::uint64_t epoch) {
    std::vector<std::uint64_t> samples(100);
    SampleOrder(seed, epoch, 60000).fill(0, samples);
    return samples;
  };
  const auto base = first_samples(1, 1);
  EXPECT_EQ(base, first_samples(1, 1));
  for (const std::uint64_t high : {std::uint64_t{1} << 32, std::uint64_t{1} << 63, std::uint64_t{2}}) {
    EXPECT_NE(base, first_samples(1 + high, 1));
    EXPECT_NE(base, first_samples(1, 1 + high));
  }
}

TEST(SampleOrderDeathTest, RefusesWhatItCannotOrder) {
  EXPECT_DEATH(SampleOrder(1, 1, 0), "size");
  EXPECT_DEATH(SampleOrder(1, 1, SampleOrder::kSizeMax + 1), "size");
  EXPECT_DEATH(static_cast<void>(SampleOrder(1, 1, 10).at(10)), "size");
}

}  // namespace
}  // namespace motley::data

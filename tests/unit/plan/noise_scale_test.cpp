#include "plan/noise_scale.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "base/philox.h"

namespace motley::plan {
namespace {

constexpr std::size_t kDimensions = 12;
constexpr double kSpread = 1.5;  // of every coordinate of the gradient of one sample
constexpr double kVariance = kDimensions * kSpread * kSpread;

double true_mean(std::size_t dimension) { return 0.1 * static_cast<double>(dimension); }
double true_signal() {
  double sum = 0;
  for (std::size_t d = 0; d < kDimensions; ++d) sum += true_mean(d) * true_mean(d);
  return sum;
}

/// One step of parts with so many samples, each sample with `items` loss-bearing items.
NoiseEstimate a_step(Philox& random, std::span<const std::uint64_t> sizes, double items) {
  std::vector<PartNorm> parts;
  std::array<double, kDimensions> total{};
  double weight = 0;
  double samples = 0;
  for (const std::uint64_t size : sizes) {
    const auto count = static_cast<double>(size);
    PartNorm part{.weight = items * count};
    for (std::size_t d = 0; d < kDimensions; ++d) {
      const double mean = true_mean(d) + kSpread / std::sqrt(count) * random.gaussian();
      part.square += std::pow(mean * part.weight, 2);
      total[d] += mean * part.weight;
    }
    parts.push_back(part);
    weight += part.weight;
    samples += count;
  }
  double mean_square = 0;
  for (const double sum : total) mean_square += std::pow(sum / weight, 2);
  return *noise_estimate(parts, mean_square, samples);
}

TEST(NoiseEstimate, IsUnbiasedForUnequalParts) {
  const std::vector<std::vector<std::uint64_t>> cuts{{128, 128}, {240, 16}, {1, 7, 24}, {100, 50, 20, 10}};
  for (const auto& sizes : cuts) {
    Philox random(3);
    constexpr int kSteps = 20000;
    double variance = 0;
    double signal = 0;
    double square = 0;
    for (int i = 0; i < kSteps; ++i) {
      const NoiseEstimate estimate = a_step(random, sizes, 3);
      variance += estimate.variance / kSteps;
      signal += estimate.signal / kSteps;
      square += estimate.signal * estimate.signal / kSteps;
    }
    EXPECT_NEAR(variance, kVariance, 0.03 * kVariance) << sizes.size() << " parts, the first of " << sizes[0];
    EXPECT_NEAR(signal, true_signal(), 4 * std::sqrt((square - signal * signal) / kSteps)) << sizes.size() << " parts";
  }
}

TEST(NoiseEstimate, SaysNothingOfOnePart) {
  EXPECT_FALSE(noise_estimate({}, 1, 32));
  EXPECT_FALSE(noise_estimate(std::vector<PartNorm>{{32, 4}}, 1, 32));
  EXPECT_FALSE(noise_estimate(std::vector<PartNorm>{{32, 4}, {0, 0}}, 1, 32)) << "all items of the other are masked";
  EXPECT_FALSE(noise_estimate(std::vector<PartNorm>{{16, 4}, {16, std::numeric_limits<double>::infinity()}}, 1, 32));
}

TEST(NoiseScale, FollowsTheMeans) {
  Philox random(5);
  NoiseScale scale;
  const std::vector<std::uint64_t> sizes{24, 8};
  for (int i = 0; i < 19; ++i) scale.record(a_step(random, sizes, 1));
  EXPECT_FALSE(scale.samples()) << "too few steps";
  for (int i = 0; i < 400; ++i) scale.record(a_step(random, sizes, 1));
  ASSERT_TRUE(scale.samples());
  EXPECT_NEAR(*scale.samples(), kVariance / true_signal(), 0.15 * kVariance / true_signal());
  EXPECT_EQ(scale.records(), 419U);
}

TEST(NoiseScale, IsCorrectFromTheStart) {
  NoiseScale scale;
  for (int i = 0; i < 20; ++i) scale.record({.variance = 50, .signal = 2});
  ASSERT_TRUE(scale.samples());
  EXPECT_NEAR(*scale.samples(), 25, 1e-9);
}

TEST(NoiseScale, IsUnknownWhereTheSignalDrownsInItsError) {
  NoiseScale scale;
  for (int i = 0; i < 100; ++i) scale.record({.variance = 100, .signal = i % 2 == 0 ? 10.0 : -9.9});
  EXPECT_FALSE(scale.samples());
}

TEST(UsefulBatch, MakesTheMostProgressASecond) {
  const double lost = 95;
  const double scale = 800;
  const auto progress = [&](double batch) { return batch / (batch + lost) / (batch + scale); };
  const double best = useful_batch(lost, scale);
  EXPECT_NEAR(best, 275.7, 0.1);
  EXPECT_GT(progress(best), progress(0.95 * best));
  EXPECT_GT(progress(best), progress(1.05 * best));
}

}  // namespace
}  // namespace motley::plan

#include "engine/coordinator_pace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "base/philox.h"

namespace motley::engine {
namespace {

constexpr std::uint64_t kBatch = 1024;
constexpr std::array<cluster::WorkerId, 2> kWorkers{1, 2};

// Passes of two workers, as they would be if shares alone decided: nothing moves while they compute.
class PaceOfTwo : public testing::Test {
 protected:
  struct Device {
    double fixed, per_sample, exposed, noise;
  };

  /// The latest finish over the mean, less one.
  double pass() {
    std::array<std::uint64_t, 2> counts{};
    pace_.split(PassKind::train, kBatch, kWorkers, false, counts);
    std::array<double, 2> finish{};
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const Device& device = devices_[i];
      const double compute = (device.fixed + device.per_sample * static_cast<double>(counts[i])) * noise(device);
      finish[i] = compute + device.exposed * noise(device);
      ++lease_;
      pace_.computed(PassKind::train, kWorkers[i], lease_, counts[i], compute);
      pace_.elapsed(PassKind::train, kWorkers[i], lease_, counts[i], nanoseconds(finish[i]));
    }
    last_ = std::max(finish[0], finish[1]);
    pace_.closed(nanoseconds(last_));
    return std::max(finish[0], finish[1]) / ((finish[0] + finish[1]) / 2) - 1;
  }
  double noise(const Device& device) { return 1 + device.noise * (2 * random_.uniform() - 1); }
  static Duration nanoseconds(double seconds) { return Duration(static_cast<std::int64_t>(1e9 * seconds)); }

  CoordinatorOptions options_ = [] {
    CoordinatorOptions options;
    options.global_batch = kBatch;
    return options;
  }();
  MeasuredPace pace_{options_};
  Philox random_{7};
  cluster::LeaseId lease_ = 0;
  double last_ = 0;
  std::array<Device, 2> devices_{Device{0.004, 0.00036, 0.01, 0.04}, Device{0.004, 0.00036, 0.03, 0.04}};
};

TEST_F(PaceOfTwo, SharesFollowADeviceThatIsThrottledToHalf) {
  for (int i = 0; i < 30; ++i) pass();
  double rest = 0;
  for (int i = 0; i < 20; ++i) rest = std::max(rest, pass());
  EXPECT_LT(rest, 0.1);
  // At the wire, too: its processor does both.
  Device& slower = devices_[1];
  slower = {2 * slower.fixed, 2 * slower.per_sample, 2 * slower.exposed, slower.noise};
  for (int i = 0; i < 5; ++i) pass();
  for (int i = 0; i < 20; ++i) EXPECT_LE(pass(), 0.1) << "in pass " << i + 5;
}

TEST_F(PaceOfTwo, WhatGainsMuchIsNotCompared) {
  for (int i = 0; i < 40; ++i) pass();
  EXPECT_TRUE(pace_.compare(kBatch, 1).pays);
}

TEST_F(PaceOfTwo, AGainInDoubtIsComparedWithStepsAlone) {
  devices_[1].per_sample *= 10;
  for (int i = 0; i < 40; ++i) pass();
  EXPECT_FALSE(pace_.compare(kBatch, 1).pays);
  EXPECT_EQ(pace_.compare(kBatch, 1).without, Duration{}) << "nothing is known to compare with";
  EXPECT_TRUE(pace_.compare(kBatch / 2, 1).pays) << "of another batch";
  const double together = last_;
  for (int i = 0; i < 10; ++i) pace_.alone(1, kBatch, 0.9 * together, 0.95 * together);
  EXPECT_TRUE(pace_.compare(kBatch, 1).pays) << "no pass since";
  for (int i = 0; i < 15; ++i) pass();
  EXPECT_TRUE(pace_.compare(kBatch, 1).pays) << "too few";
  pass();
  EXPECT_FALSE(pace_.compare(kBatch, 1).pays);
  EXPECT_NEAR(seconds(pace_.compare(kBatch, 1).without), 0.95 * together, 0.01 * together);
  for (int i = 0; i < 10; ++i) pace_.alone(1, kBatch, 1.2 * together, 1.3 * together);
  for (int i = 0; i < 16; ++i) pass();
  EXPECT_TRUE(pace_.compare(kBatch, 1).pays);
}

}  // namespace
}  // namespace motley::engine

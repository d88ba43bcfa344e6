#include "plan/device_speed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace motley::plan {
namespace {

constexpr Sizes kSizes{.batch = 1024, .grain = 8};

/// Calibrates it until enough is known; the sizes.
std::vector<std::uint64_t> calibrate(DeviceSpeed& device, const Affine& truth) {
  std::vector<std::uint64_t> sizes;
  while (const std::uint64_t samples = device.calibration(kSizes)) {
    device.calibrated(samples, truth.seconds(static_cast<double>(samples)));
    sizes.push_back(samples);
  }
  return sizes;
}

TEST(DeviceSpeed, IsMeasuredByCalibrationsOfTwoSizes) {
  struct Case {
    Affine truth;
    std::vector<std::uint64_t> sizes;
  };
  const std::vector<Case> cases{
      {{0, 0.001}, {64, 64, 400, 96}},
      {{0.01, 0.0001}, {64, 64, 1560, 384}},
      {{0, 0.1}, {64, 64, 128, 32}},  // two sizes at the least
      {{0, 1e-12}, {64, 64, 25'600'000, 6'400'000}},
  };
  for (const auto& [truth, sizes] : cases) {
    DeviceSpeed device;
    EXPECT_FALSE(device.time());
    EXPECT_EQ(device.trial(kSizes), 8U);
    EXPECT_EQ(calibrate(device, truth), sizes);
    if (truth.fixed == 0) {
      EXPECT_NEAR(device.time()->per_sample, truth.per_sample, 0.01 * truth.per_sample);
    }
  }
}

TEST(DeviceSpeed, WhatAnEarlierRunLearnedIsOnlyChecked) {
  struct Case {
    double now;
    std::size_t calibrations;
  };
  for (const auto& [now, calibrations] : std::vector<Case>{{0.011, 2}, {0.0126, 4}, {0.0074, 4}, {0.03, 4}}) {
    DeviceSpeed device;
    device.known_before({0, 0.01});
    EXPECT_EQ(calibrate(device, {0, now}).size(), calibrations) << now;
    EXPECT_NEAR(device.time()->per_sample, now, 0.1 * now);
    device.known_before({0, 1});
    EXPECT_LT(device.time()->per_sample, 0.1) << "what this run learned is newer";
  }
}

TEST(DeviceSpeed, TrialsTakeAFifthOfASecond) {
  for (const auto& [truth, samples] : std::vector<std::pair<Affine, std::uint64_t>>{
           {{0, 0.001}, 200}, {{0, 1e-5}, 1024}, {{0.5, 0.01}, 8}, {{0, 1}, 8}}) {
    DeviceSpeed device;
    device.known_before(truth);
    EXPECT_EQ(device.trial(kSizes), samples);
  }
}

TEST(DeviceSpeed, ADeviceThatWasLetGoIsMeasuredAnew) {
  DeviceSpeed device;
  calibrate(device, {0, 0.01});
  EXPECT_EQ(device.calibrated(16, 0.17), DeviceSpeed::Tried::as_ever);
  EXPECT_EQ(device.calibrated(16, 0.14), DeviceSpeed::Tried::as_ever) << "not much faster";
  EXPECT_EQ(device.calibration(kSizes), 0U);
  EXPECT_EQ(device.calibrated(16, 0.008), DeviceSpeed::Tried::faster);
  EXPECT_THAT(calibrate(device, {0, 0.0005}), testing::SizeIs(2)) << "it is warm";
  EXPECT_NEAR(device.time()->per_sample, 0.0005, 1e-5);
}

}  // namespace
}  // namespace motley::plan

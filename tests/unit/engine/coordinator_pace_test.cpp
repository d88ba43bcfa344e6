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
    pace_.split(PassKind::train, options_.global_batch, kWorkers, false, counts);
    share_ = counts[0];
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
  double compute(std::uint64_t samples) {
    return devices_[1].fixed + devices_[1].per_sample * static_cast<double>(samples);
  }
  /// The second one, parked, computes beside the run.
  void try_it() {
    while (pace_.calibration(2) > 0) pace_.calibrated(2, pace_.calibration(2), compute(pace_.calibration(2)));
    const std::uint64_t samples = pace_.trial(2);
    pace_.calibrated(2, samples, compute(samples));
  }
  bool judged() { return pace_.judge(kBatch, std::array<cluster::WorkerId, 1>{1}, 2).pays; }
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
  std::uint64_t share_ = 0;  // of the first
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

TEST_F(PaceOfTwo, AParkedWorkerThatWasLetGoIsMeasuredAnew) {
  const auto seconds = [](std::uint64_t samples) { return 0.01 * static_cast<double>(samples); };
  int calibrations = 0;
  for (; const std::uint64_t samples = pace_.calibration(1); ++calibrations)
    pace_.calibrated(1, samples, seconds(samples));
  EXPECT_EQ(calibrations, 4);
  const std::uint64_t trial = pace_.trial(1);
  EXPECT_NEAR(static_cast<double>(trial), 20, 1);
  pace_.calibrated(1, trial, 1.1 * seconds(trial));
  EXPECT_EQ(pace_.calibration(1), 0U) << "not much slower";
  pace_.calibrated(1, trial, seconds(trial) / 20);
  for (calibrations = 0; const std::uint64_t samples = pace_.calibration(1); ++calibrations)
    pace_.calibrated(1, samples, seconds(samples) / 20);
  EXPECT_EQ(calibrations, 2);
  EXPECT_NEAR(static_cast<double>(pace_.trial(1)), 400, 4);
}

TEST_F(PaceOfTwo, TrialsSayNothingOfALink) {
  devices_[1].exposed = 0.8;
  for (int i = 0; i < 10; ++i) pass();
  ASSERT_FALSE(judged()) << "the link alone takes longer than a step";
  for (int i = 0; i < 3; ++i) try_it();
  EXPECT_FALSE(judged());
  for (int i = 0; i < 40; ++i) try_it();
  EXPECT_TRUE(judged()) << "after minutes it gets another chance";
}

TEST_F(PaceOfTwo, AVersionThatArrivesSoonerSpeaksForTheLink) {
  devices_[1].exposed = 0.8;
  for (int i = 0; i < 10; ++i) pass();
  pace_.reached(2, nanoseconds(0.2));
  pace_.reached(2, nanoseconds(0.15));
  EXPECT_FALSE(judged());
  pace_.reached(2, nanoseconds(0.01));
  EXPECT_TRUE(judged());
}

TEST_F(PaceOfTwo, AHopelessLinkIsFoundInOnePassWherePassesAreLong) {
  devices_ = {Device{0.4, 0.036, 0, 0}, Device{0.4, 0.036, 39, 0}};
  pass();
  EXPECT_FALSE(judged());
}

TEST_F(PaceOfTwo, ALinkThatBecomesSlowIsBelievedAtItsSecondPass) {
  for (int i = 0; i < 10; ++i) pass();
  const double quiet = devices_[1].exposed;
  devices_[1].exposed = 2;
  pass();
  EXPECT_TRUE(judged()) << "once is a hiccup";
  devices_[1].exposed = quiet;
  pass();
  devices_[1].exposed = 2;
  pass();
  EXPECT_TRUE(judged());
  pass();
  EXPECT_FALSE(judged());
}

TEST_F(PaceOfTwo, WhatAFirstPassWaitsBeyondItsLinkIsDoubted) {
  const auto after_a_pass = [this](double version) {
    pace_ = MeasuredPace(options_);
    devices_[1].exposed = 0.8;
    if (version > 0) pace_.reached(2, nanoseconds(version));
    pass();
    return judged();
  };
  EXPECT_TRUE(after_a_pass(0)) << "a cold one may cost as much";
  EXPECT_FALSE(after_a_pass(0.7)) << "weights took as long before, which two machines save not";
}

TEST_F(PaceOfTwo, ColdPassesHaveLittleSaySoonAfter) {
  options_.global_batch = 32;
  options_.grain = 1;
  pace_ = MeasuredPace(options_);
  constexpr std::array<std::array<double, 2>, 3> kCold{{{1.9, 1.2}, {1.6, 1.3}, {1.4, 1.3}}};
  for (const auto& [first, second] : kCold) {
    devices_ = {Device{0, 0.105 * first, 0.7, 0}, Device{0, 0.105 * second, 0.7, 0}};
    pass();
  }
  EXPECT_LT(share_, 15U);
  devices_ = {Device{0, 0.105, 0.05, 0.01}, Device{0, 0.105, 0.08, 0.01}};
  for (int i = 0; i < 8; ++i) pass();
  EXPECT_EQ(share_, 16U);
}

TEST_F(PaceOfTwo, WhoComputesFasterAgainMayDoMoreAtTheWireAsWell) {
  devices_[1] = {20 * devices_[1].fixed, 20 * devices_[1].per_sample, 0.4, 0};
  for (int i = 0; i < 10; ++i) pass();
  EXPECT_FALSE(judged());
  devices_[1] = devices_[0];
  try_it();
  for (std::uint64_t samples = 0; (samples = pace_.calibration(2)) > 0;) pace_.calibrated(2, samples, compute(samples));
  EXPECT_TRUE(judged());
}

TEST_F(PaceOfTwo, WhereTheLinkIsTheLimitNumbersGetFewerBits) {
  options_.gradients.reset();
  options_.weights.reset();
  pace_ = MeasuredPace(options_);
  pace_.connected(2, true);
  const auto passes = [&](double wire) {
    for (int i = 0; i < 40; ++i) {
      const auto bytes = static_cast<double>(codec::encoded_bytes(pace_.codec(2), 4096));
      devices_[1].exposed = wire * bytes / (4 * 4096);
      pass();
      pace_.weigh_codec(2);
    }
  };
  passes(0.01);
  EXPECT_EQ(pace_.codec(2), codec::CodecId::fp32);
  passes(0.15);
  EXPECT_EQ(pace_.codec(2), codec::CodecId::int4);
  EXPECT_TRUE(judged());
  pace_.residual(2, 3.5);
  EXPECT_EQ(pace_.codec(2), codec::CodecId::int4) << "not while leases are open";
  pace_.weigh_codec(2);
  EXPECT_EQ(pace_.codec(2), codec::CodecId::int8);
}

TEST_F(PaceOfTwo, NumbersOfTheHeadsOwnWorkersStayExact) {
  options_.gradients.reset();
  options_.weights.reset();
  pace_ = MeasuredPace(options_);
  pace_.connected(2, true);
  pace_.reached(1, nanoseconds(0.8));
  pace_.reached(2, nanoseconds(0.8));
  EXPECT_EQ(pace_.codec(1), codec::CodecId::fp32) << "it took a device so long, not a link";
  EXPECT_EQ(pace_.codec(2), codec::CodecId::int8);
}

TEST_F(PaceOfTwo, NumbersThatStayOnTheMachineStayExact) {
  options_.gradients.reset();
  options_.weights.reset();
  pace_ = MeasuredPace(options_);
  pace_.connected(2, false);
  devices_[1].exposed = 0.15;
  for (int i = 0; i < 40; ++i) {
    pass();
    pace_.weigh_codec(2);
  }
  EXPECT_EQ(pace_.codec(2), codec::CodecId::fp32);
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
  EXPECT_FALSE(pace_.resolve(kBatch, 1).pays) << "those before were longer";
  for (int i = 0; i < 10; ++i) pass();
  EXPECT_TRUE(pace_.compare(kBatch, 1).pays) << "too few";
  for (int i = 0; i < 14; ++i) pass();
  EXPECT_FALSE(pace_.compare(kBatch, 1).pays);
  EXPECT_NEAR(seconds(pace_.compare(kBatch, 1).without), 0.95 * together, 0.01 * together);
  for (int i = 0; i < 10; ++i) pace_.alone(1, kBatch, 1.2 * together, 1.3 * together);
  EXPECT_TRUE(pace_.resolve(kBatch, 1).pays);
  for (int i = 0; i < 24; ++i) pass();
  EXPECT_TRUE(pace_.compare(kBatch, 1).pays);
}

TEST_F(PaceOfTwo, WhereFewPassesSettleMoreOfThemAreToldAgain) {
  const auto told_after = [&] {
    std::vector<int> passes;
    for (int i = 1; i <= 40; ++i) {
      pass();
      if (!pace_.news()) continue;
      pace_.told();
      passes.push_back(i);
    }
    return passes;
  };
  EXPECT_EQ(told_after(), (std::vector{1, 8}));
  pace_ = MeasuredPace(options_);
  for (Device& device : devices_) {
    device.fixed *= 100;
    device.per_sample *= 100;
  }
  EXPECT_EQ(told_after(), (std::vector{1, 2, 8}));
}

TEST_F(PaceOfTwo, WhatAWorkerDoesAloneIsToldEachTimeThatItIsLeftToIt) {
  const auto steps_until_told = [&](double step) {
    for (int i = 0; i < 20; ++i) pass();
    pace_.told();
    int steps = 0;
    while (!pace_.news()) {
      pace_.alone(1, kBatch, 0.9 * step, step);
      ++steps;
    }
    pace_.told();
    for (int i = 0; i < 100; ++i) pace_.alone(1, kBatch, 0.9 * step, step);
    EXPECT_FALSE(pace_.news());
    return steps;
  };
  EXPECT_EQ(steps_until_told(0.3), 17) << "5 s";
  EXPECT_EQ(steps_until_told(0.3), 17) << "again";
  EXPECT_EQ(steps_until_told(0.03), 30);
  EXPECT_EQ(steps_until_told(4), 3) << "as few tell enough";
}

TEST_F(PaceOfTwo, TheLargerALossTheFewerPassesShowIt) {
  const auto until_believed = [&](double part, double slower = 1) {
    pace_ = MeasuredPace(options_);
    for (Device& device : devices_) {
      device.noise = 0;
      device.fixed *= slower;
      device.per_sample *= slower;
    }
    for (int i = 0; i < 30; ++i) pass();
    for (int i = 0; i < 40; ++i) pace_.alone(1, kBatch, part * last_, part * last_);
    int passes = 0;
    do {
      pass();
    } while (pace_.compare(kBatch, 1).pays && ++passes < 40);
    return passes;
  };
  EXPECT_EQ(until_believed(0.7), 10);
  EXPECT_GE(until_believed(0.96), 12);
  EXPECT_EQ(until_believed(0.7, 100), 4) << "where each takes seconds, fewer settle";
}

}  // namespace
}  // namespace motley::engine

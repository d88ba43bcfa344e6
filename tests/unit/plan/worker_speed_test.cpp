#include "plan/worker_speed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "base/philox.h"
#include "plan/shares.h"

namespace motley::plan {
namespace {

constexpr std::uint64_t kSamples = 100;

/// Passes of 100 samples, of which the device computes for so long.
void passes(WorkerSpeed& worker, int count, double computes, double waits) {
  static std::uint64_t lease = 0;
  for (int i = 0; i < count; ++i) {
    worker.computed(++lease, kSamples, computes);
    worker.elapsed(lease, kSamples, computes + waits);
  }
}

TEST(WorkerSpeed, HalvesOfAPassComeInAnyOrder) {
  WorkerSpeed worker;
  EXPECT_FALSE(worker.time());
  worker.elapsed(1, kSamples, 0.5);
  EXPECT_EQ(worker.time(), (Affine{0, 0.005})) << "computing and waiting cannot be told apart yet";
  worker.computed(1, kSamples, 0.4);
  EXPECT_NEAR(worker.wire().seconds().value_or(0), 0.1, 1e-9);
  worker.computed(2, kSamples, 0.4);
  EXPECT_NEAR(worker.wire().seconds().value_or(0), 0.1, 1e-9) << "of another lease";
  worker.elapsed(2, kSamples, 0.6);
  EXPECT_NEAR(worker.wire().seconds().value_or(0), 0.2, 1e-9);
  const auto pass = worker.take_pass();
  ASSERT_TRUE(pass);
  EXPECT_EQ(pass->compute_seconds, 0.4);
  EXPECT_NEAR(pass->exposed_seconds, 0.2, 1e-9);
  EXPECT_FALSE(worker.take_pass()) << "once";
  EXPECT_EQ(worker.elapsed(1), 0.5);
  EXPECT_EQ(worker.elapsed(2), 0.6);
  EXPECT_FALSE(worker.elapsed(3));
}

TEST(WorkerSpeed, WhatIsLateCountsForItsDeviceOrItsLink) {
  struct Case {
    const char* what;
    std::uint64_t samples;
    double seconds;
    bool computes;
    double compute_after, exposed_after;
  };
  for (const Case& each : std::vector<Case>{
           {"it computes, twice as slowly", kSamples, 0.8, true, 0.8, 0.1},
           {"it has had less time than it takes", kSamples, 0.2, true, 0.4, 0.1},
           {"it waits for weights, or sends", kSamples, 0.9, false, 0.4, 0.5},
           {"it did nothing", 0, 9, false, 0.4, 0.1},
       }) {
    WorkerSpeed worker;
    passes(worker, 10, 0.4, 0.1);
    for (std::uint64_t lease = 1001; lease < 1003; ++lease)
      worker.late(lease, each.samples, each.seconds, each.computes);
    EXPECT_NEAR(worker.device().time()->seconds(kSamples), each.compute_after, 0.05) << each.what;
    EXPECT_NEAR(worker.wire().seconds().value_or(0), each.exposed_after, 0.01) << each.what;
  }
  WorkerSpeed unknown;
  unknown.late(1, kSamples, 1, true);
  EXPECT_FALSE(unknown.time());
}

TEST(WorkerSpeed, WhatIsFasterBesideTheRunIsKnownUntilItsNextPass) {
  WorkerSpeed device, link;
  for (WorkerSpeed* worker : {&device, &link}) {
    while (const std::uint64_t samples = worker->device().calibration({.batch = kSamples}))
      EXPECT_FALSE(worker->calibrated(samples, 0.004 * static_cast<double>(samples)));
    passes(*worker, 10, 0.4, 0.8);
    EXPECT_TRUE(worker->calibrated(kSamples, 0.4));
    EXPECT_FALSE(worker->faster());
  }
  EXPECT_FALSE(device.calibrated(kSamples, 0.1));
  EXPECT_TRUE(device.faster());
  EXPECT_FALSE(device.wire().seconds()) << "its processor does both";
  EXPECT_NEAR(device.time()->seconds(kSamples), 0.1, 0.01);
  link.version(0.2);
  link.version(0.01);
  EXPECT_TRUE(link.faster());
  passes(link, 1, 0.4, 0.8);
  EXPECT_FALSE(link.faster());
}

TEST(WorkerSpeed, StepsAloneAreKnownFromTheSecondOn) {
  WorkerSpeed worker;
  worker.alone(kSamples, 0.4, 9);
  EXPECT_FALSE(worker.step_alone(kSamples)) << "in the first it makes copies of everything";
  worker.alone(kSamples, 0.4, 0.45);
  EXPECT_NEAR(worker.step_alone(2 * kSamples).value_or(0), 0.9, 1e-9);
  EXPECT_NEAR(worker.device().time()->seconds(kSamples), 0.4, 1e-9);
}

TEST(WorkerSpeed, ACandidateIsWithoutWhatOtherSendersCost) {
  WorkerSpeed worker;
  worker.wire().expect_senders(3, 0.05);
  passes(worker, 10, 0.4, 0.12);
  const Candidate among = worker.candidate(true, 0.05);
  EXPECT_NEAR(among.wait, 0.04, 1e-9);
  EXPECT_NEAR(among.time->seconds(kSamples), 0.44, 1e-9);
  const Candidate local = worker.candidate(false, 0);
  EXPECT_EQ(local.wait, 0);
  EXPECT_NEAR(local.time->seconds(kSamples), 0.52, 1e-9);
  EXPECT_FALSE(WorkerSpeed{}.candidate(true, 0.05).time);
}

TEST(WorkerSpeed, OnePassSaysLittleOfHowMuchAllVary) {
  WorkerSpeed worker;
  passes(worker, 60, 0.4, 0.1);
  EXPECT_NEAR(worker.candidate(false, 0).spread, 0, 0.001);
  passes(worker, 1, 0.4, 60);
  EXPECT_NEAR(worker.candidate(false, 0).spread, 0.03, 0.001);
}

// Passes of two workers, as they would be if shares alone decided: nothing moves while they compute.
TEST(WorkerSpeed, SharesFollowADeviceThatIsThrottledToHalf) {
  constexpr std::array<std::uint64_t, 2> kWorkers{1, 2};
  std::array<WorkerSpeed, 2> workers;
  std::array<double, 2> slower{1, 1}, exposed{0.01, 0.03};
  Shares shares;
  Philox random(7);
  std::uint64_t lease = 0;
  const auto noise = [&] { return 1 + 0.04 * (2 * random.uniform() - 1); };
  /// The latest finish over the mean, less one.
  const auto pass = [&] {
    const std::array candidates{workers[0].candidate(false, 0), workers[1].candidate(false, 0)};
    const Plan plan = shares.split({.total = 1024}, candidates, kWorkers, false);
    std::array<double, 2> finish{};
    for (std::size_t i = 0; i < 2; ++i) {
      const double computes = slower[i] * (0.004 + 0.00036 * static_cast<double>(plan.counts[i])) * noise();
      finish[i] = computes + slower[i] * exposed[i] * noise();  // its processor does both
      workers[i].computed(++lease, plan.counts[i], computes);
      workers[i].elapsed(lease, plan.counts[i], finish[i]);
    }
    return std::max(finish[0], finish[1]) / ((finish[0] + finish[1]) / 2) - 1;
  };
  for (int i = 0; i < 50; ++i) {
    const double apart = pass();
    if (i >= 30) {
      EXPECT_LT(apart, 0.1) << "in pass " << i;
    }
  }
  slower[1] = 2;
  for (int i = 0; i < 5; ++i) pass();
  for (int i = 0; i < 20; ++i) EXPECT_LE(pass(), 0.1) << "in pass " << i + 5;
}

}  // namespace
}  // namespace motley::plan

#include <gtest/gtest.h>

#include <numeric>

#include "compute_bench.h"

namespace motley::runtime {
namespace {

engine::DelegatedSteps order_of(std::uint64_t number, std::uint64_t steps, const BatchPlan& batches) {
  return {.number = number,
          .steps = steps,
          .batches = batches,
          .opened = {},
          .server = std::make_shared<ps::Server>(two_chunk_server())};
}

TEST(ComputeThread, StepsWaitToBeTakenAndEndWhereTheyAreCut) {
  Bench bench;
  std::vector<std::uint64_t> steps;
  std::uint64_t samples = 0;
  std::promise<void> second, fourth, over;
  DelegatedStepEvents events;
  events.step = [&](const engine::DelegatedStep& step) {
    steps.push_back(step.step);
    samples += step.samples;
    if (steps.size() == 2) second.set_value();
    if (steps.size() == 4) fourth.set_value();
  };
  events.ended = [&](const engine::DelegationEnd& end) {
    EXPECT_EQ(end.number, 7U);
    EXPECT_FALSE(end.failure.has_value());
    over.set_value();
  };
  bench.thread->delegate(order_of(7, 1000, BatchPlan(100, 16)), events);
  second.get_future().get();
  bench.thread->taken();
  bench.thread->taken();
  fourth.get_future().get();  // and no fifth: nothing was taken since
  bench.thread->cut(7);
  over.get_future().get();
  EXPECT_EQ(steps, (std::vector<std::uint64_t>{0, 1, 2, 3}));
  EXPECT_EQ(samples, 4U * 16U);
}

TEST(ComputeThread, EachStepHasTheSamplesOfItsBatch) {
  std::vector<std::uint64_t> sizes;
  Bench bench({.open = [&](const Task& task) -> Status {
    sizes.push_back(task.indices.size());
    return {};
  }});
  BatchPlan batches(100, 40);
  batches.change({1, 45});
  std::promise<void> over;
  DelegatedStepEvents events;
  events.step = [&](const engine::DelegatedStep&) { bench.thread->taken(); };
  events.ended = [&](const engine::DelegationEnd&) { over.set_value(); };
  bench.thread->delegate(order_of(1, 4, batches), events);
  over.get_future().get();
  EXPECT_EQ(sizes, (std::vector<std::uint64_t>{40, 45, 15, 45}));
}

TEST(ComputeThread, AStepThatDoesNotFitTheMemoryIsMadeInSmallerMicroBatches) {
  std::vector<std::uint32_t> sizes;
  Bench bench({.open = [&](const Task& task) -> Status {
    sizes.push_back(task.micro_batch);
    return task.micro_batch > 2 ? Status(Error{ErrorCode::memory, "full", ""}) : Status();
  }});
  std::promise<void> over;
  DelegatedStepEvents events;
  std::uint64_t steps = 0;
  events.step = [&](const engine::DelegatedStep&) { ++steps; };
  events.ended = [&](const engine::DelegationEnd& end) {
    EXPECT_FALSE(end.failure.has_value());
    over.set_value();
  };
  bench.thread->delegate(order_of(1, 2, BatchPlan(100, 16)), events);
  over.get_future().get();
  EXPECT_EQ(steps, 2U);
  EXPECT_EQ(sizes, (std::vector<std::uint32_t>{8, 4, 2, 2}));
}

TEST(ComputeThread, TheSearchForTheMicroBatchGoesOnWhileItMakesSteps) {
  std::vector<std::uint32_t> sizes;
  const Script script = {.open = [&](const Task& task) -> Status {
    sizes.push_back(task.micro_batch);
    return {};
  }};
  // Room for six samples.
  Bench bench(script, 1, {}, [&] { return MemoryUse{100, 100 + 10 * (sizes.empty() ? 0 : sizes.back()), 162}; });
  std::promise<void> over;
  DelegatedStepEvents events;
  events.step = [&](const engine::DelegatedStep&) { bench.thread->taken(); };
  events.ended = [&](const engine::DelegationEnd&) { over.set_value(); };
  bench.thread->delegate(order_of(1, 3, BatchPlan(100, 16)), events);
  over.get_future().get();
  EXPECT_EQ(sizes, (std::vector<std::uint32_t>{1, 2, 2, 4, 4}));  // the first two when it was prepared
}

/// A device with a memory of its own, on which every gradient is one; from step `fails` on it is not finite.
struct ResidentRun {
  ps::ServerDeviceOptimizer device{two_chunk_server()};
  std::uint64_t fails = 1000;
  std::vector<std::uint64_t> steps, downloaded;
  std::vector<ps::Snapshot> after;  // of those that were brought
  std::optional<engine::DelegationEnd> end;

  void run(std::uint64_t count) {
    const Script script = {.forward = [this](const Task& task) -> Status {
      EXPECT_TRUE(task.resident);
      EXPECT_TRUE(device.settled);
      const float one = task.version < fails ? 1 : std::numeric_limits<float>::infinity();
      for (std::vector<float>& sum : device.sums) std::ranges::fill(sum, one);
      return {};
    }};
    Bench bench(script, 1, {}, {}, 0, false, &device);
    std::promise<void> over;
    DelegatedStepEvents events;
    events.step = [&](const engine::DelegatedStep& step) {
      steps.push_back(step.step);
      if (!step.after.weights.empty()) {
        downloaded.push_back(step.step);
        after.push_back(step.after);
      }
      bench.thread->taken();
    };
    events.ended = [&](engine::DelegationEnd found) {
      end = std::move(found);
      over.set_value();
    };
    bench.thread->delegate(order_of(3, count, BatchPlan(100, 16)), events);
    over.get_future().get();
    EXPECT_FALSE(device.settled);
  }
};

TEST(ComputeThread, WhatADelegationLeavesOnADeviceComesWithItsEnd) {
  ResidentRun made;
  made.run(3);
  EXPECT_EQ(made.steps, (std::vector<std::uint64_t>{0, 1, 2}));
  EXPECT_TRUE(made.downloaded.empty());
  EXPECT_FALSE(made.end->failure);
  EXPECT_EQ(made.end->after.version, 3U);
  EXPECT_FLOAT_EQ(made.end->after.weights[0].floats()[5], -3e-3F);
}

TEST(ComputeThread, WeightsComeFromTheDeviceAtTheEndOfAnEpoch) {
  ResidentRun made;
  made.run(9);  // of which seven are an epoch
  EXPECT_EQ(made.downloaded, (std::vector<std::uint64_t>{6}));
  EXPECT_EQ(made.end->after.version, 9U);
}

TEST(ComputeThread, StepsGoOnWhileWeightsAreOnTheirWay) {
  ResidentRun made;
  made.device.room = true;
  made.run(16);  // of which seven are an epoch
  std::vector<std::uint64_t> in_order(16);
  std::iota(in_order.begin(), in_order.end(), 0);
  EXPECT_EQ(made.steps, in_order);
  EXPECT_EQ(made.downloaded, (std::vector<std::uint64_t>{6, 13}));
  ASSERT_EQ(made.after.size(), 2U);
  EXPECT_EQ(made.after[0].version, 7U);
  EXPECT_FLOAT_EQ(made.after[0].weights[0].floats()[5], -7e-3F);
  EXPECT_EQ(made.after[1].version, 14U);
  EXPECT_EQ(made.end->after.version, 16U);
}

TEST(ComputeThread, WhatWasOnItsWayComesBeforeAFailure) {
  ResidentRun made;
  made.device.room = true;
  made.fails = 8;
  made.run(16);
  EXPECT_EQ(made.steps, (std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(made.downloaded, (std::vector<std::uint64_t>{6}));
  ASSERT_TRUE(made.end->failure);
  EXPECT_EQ(made.end->after.version, 8U);
}

TEST(ComputeThread, StepsAreLostWithTheDeviceThatTheirWeightsWereOn) {
  ResidentRun made;
  made.device.room = made.device.gone = true;
  made.run(16);
  EXPECT_EQ(made.steps, (std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5}));
  ASSERT_TRUE(made.end->failure);
  EXPECT_TRUE(made.end->after.weights.empty());
}

TEST(ComputeThread, StepsBeforeAFailureAreBroughtFromTheDevice) {
  ResidentRun made;
  made.fails = 2;
  made.run(5);
  ASSERT_TRUE(made.end->failure);
  EXPECT_EQ(made.end->failure->code, ErrorCode::diverged);
  EXPECT_EQ(made.end->after.version, 2U);
}

TEST(ComputeThread, StepsOfADeviceThatIsGoneAreLost) {
  ResidentRun made;
  made.device.gone = true;
  made.run(2);
  ASSERT_TRUE(made.end->failure);
  EXPECT_TRUE(made.end->after.weights.empty());
}

}  // namespace
}  // namespace motley::runtime

#include "engine/local/soloist.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "../../ps/server_device_optimizer.h"
#include "../head/fixture.h"

namespace motley::engine {
namespace {

constexpr double kClip = 3;

DelegatedSteps order_of(const ps::Server& server) {
  return {.number = 5,
          .steps = 3,
          .batches = BatchPlan(40, 16),
          .opened = Time(100),
          .server = std::make_shared<ps::Server>(server.fork())};
}

void compute_step(Soloist& soloist, const Layout& layout) {
  const StepRange pass = soloist.pass();
  const auto weight = static_cast<double>(pass.count);
  soloist.begin(pass.count, weight, 2 * weight);
  for (ChunkId chunk = 0; chunk < layout.chunks().size(); ++chunk)
    soloist.ready(chunk, gradient_sum(layout.chunks()[chunk], pass.order_first, pass.count));
  EXPECT_TRUE(soloist.took({pass.count, weight, 2 * weight, 0}).ok());
}

void expect_same(const std::vector<SharedBytes>& found, const std::vector<SharedBytes>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_TRUE(std::ranges::equal(found[i].bytes(), expected[i].bytes())) << "chunk " << i;
  }
}

TEST(Soloist, ItsStepsAreThoseOfTheServerAndTheServerCanAdoptThem) {
  const Layout layout = test_layout();
  ps::Server server = test_server(layout, kClip), adopting = test_server(layout, kClip);
  Soloist soloist(order_of(server));
  for (std::uint64_t version = 0; version < 3; ++version) {
    ASSERT_TRUE(soloist.more());
    const StepRange pass = BatchPlan(40, 16).range(version);
    for (ChunkId chunk = 0; chunk < layout.chunks().size(); ++chunk) {
      const std::vector<float> sum = gradient_sum(layout.chunks()[chunk], pass.order_first, pass.count);
      const std::span<const float> part(sum);
      server.reduce(chunk, {&part, 1}, static_cast<double>(pass.count), pass.count);
    }
    const double norm = server.gradient_norm();
    ASSERT_TRUE(server.close_gradient().ok());
    for (ChunkId chunk = 0; chunk < layout.chunks().size(); ++chunk) server.apply(chunk);

    compute_step(soloist, layout);
    const DelegatedStep step = soloist.finish(0.5, Time(200 + 50 * static_cast<int>(version))).value();
    EXPECT_EQ(step.number, 5U);
    EXPECT_EQ(step.step, version);
    EXPECT_EQ(step.gradient_norm, norm);
    EXPECT_EQ(step.loss_sum, 2 * static_cast<double>(pass.count));
    EXPECT_EQ(step.duration, Duration(version == 0 ? 100 : 50));
    EXPECT_EQ(step.samples, pass.count);
    server.finish_step();
    adopting.adopt(step.after);
    EXPECT_EQ(adopting.version(), version + 1);
    expect_same(adopting.snapshot().weights, server.snapshot().weights);
    expect_same(adopting.snapshot().optimizer.at("momentum_buffer"), server.snapshot().optimizer.at("momentum_buffer"));
  }
  EXPECT_FALSE(soloist.more());
}

TEST(Soloist, WhatIsNotFiniteIsNotUpdatedWith) {
  const Layout layout = test_layout();
  const ps::Server server = test_server(layout);
  Soloist soloist(order_of(server));
  const Outcome outcome{16, 16, 0, 0};
  soloist.begin(16, 16, 0);
  for (ChunkId chunk = 0; chunk < layout.chunks().size(); ++chunk) {
    std::vector<float> sum(layout.chunks()[chunk].elements, 1);
    if (chunk == 1) sum.back() = std::numeric_limits<float>::quiet_NaN();
    soloist.ready(chunk, sum);
  }
  const Status took = soloist.took(outcome);
  ASSERT_FALSE(took.ok());
  EXPECT_EQ(took.error().code, ErrorCode::diverged);
}

TEST(Soloist, APartOfTheGradientIsNotEnough) {
  const Layout layout = test_layout();
  const ps::Server server = test_server(layout);
  Soloist soloist(order_of(server));
  soloist.begin(16, 16, 0);
  soloist.ready(0, std::vector<float>(layout.chunks()[0].elements, 1));
  EXPECT_FALSE(soloist.took({16, 16, 0, 0}).ok());
}

void compute_on_device(Soloist& soloist, ps::ServerDeviceOptimizer& device, const Layout& layout) {
  const StepRange pass = soloist.pass();
  const auto weight = static_cast<double>(pass.count);
  soloist.begin(pass.count, weight, 0);
  device.loss_sum = 2 * weight;
  for (ChunkId chunk = 0; chunk < layout.chunks().size(); ++chunk)
    device.sums[chunk] = gradient_sum(layout.chunks()[chunk], pass.order_first, pass.count);
  EXPECT_TRUE(soloist.took({pass.count, weight, 0, 0}).ok());
}

TEST(Soloist, WhatIsNotFiniteOnADeviceIsNotUpdatedWith) {
  const Layout layout = test_layout();
  ps::Server server = test_server(layout, kClip);
  for (const bool loss : {false, true}) {
    ps::ServerDeviceOptimizer device(server.fork());
    Soloist soloist(order_of(server));
    ASSERT_TRUE(soloist.settle(&device));
    compute_on_device(soloist, device, layout);
    if (loss) device.loss_sum = std::numeric_limits<double>::quiet_NaN();
    if (!loss) device.sums[1].back() = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(soloist.finish(0.5, Time(200)).error().code, ErrorCode::diverged);
    EXPECT_EQ(soloist.download().value().version, 0U);
  }
}

TEST(Soloist, OnADeviceStepsComeWithoutWeightsAndTheseTogether) {
  const Layout layout = test_layout();
  ps::Server server = test_server(layout, kClip);
  ps::ServerDeviceOptimizer device(server.fork());
  Soloist here(order_of(server)), resident(order_of(server));
  ASSERT_TRUE(resident.settle(&device));
  EXPECT_TRUE(resident.resident());
  ps::Snapshot expected;
  for (int i = 0; i < 3; ++i) {
    compute_step(here, layout);
    compute_on_device(resident, device, layout);
    const DelegatedStep whole = here.finish(0.5, Time(200)).value(), step = resident.finish(0.5, Time(200)).value();
    expected = whole.after;
    EXPECT_EQ(step.step, whole.step);
    EXPECT_EQ(step.gradient_norm, whole.gradient_norm);
    EXPECT_EQ(step.loss_sum, whole.loss_sum);
    EXPECT_EQ(step.learning_rate, whole.learning_rate);
    EXPECT_TRUE(step.after.weights.empty());
  }
  EXPECT_FALSE(resident.more());
  const ps::Snapshot downloaded = resident.download().value();
  EXPECT_EQ(downloaded.version, 3U);
  expect_same(downloaded.weights, expected.weights);
  expect_same(downloaded.optimizer.at("momentum_buffer"), expected.optimizer.at("momentum_buffer"));
}

TEST(Soloist, ADeviceWithoutRoomStaysHere) {
  const Layout layout = test_layout();
  ps::Server server = test_server(layout, kClip);
  ps::ServerDeviceOptimizer device(server.fork());
  device.full = true;
  Soloist soloist(order_of(server));
  EXPECT_FALSE(soloist.settle(&device));
  compute_step(soloist, layout);
  EXPECT_FALSE(soloist.finish(0.5, Time(200)).value().after.weights.empty());
}

TEST(Soloist, ADivergedStepOnADeviceLeavesThoseBeforeIt) {
  const Layout layout = test_layout();
  ps::Server server = test_server(layout, kClip);
  ps::ServerDeviceOptimizer device(server.fork());
  Soloist soloist(order_of(server));
  ASSERT_TRUE(soloist.settle(&device));
  compute_on_device(soloist, device, layout);
  ASSERT_TRUE(soloist.finish(0.5, Time(200)).ok());
  compute_on_device(soloist, device, layout);
  device.sums[0][3] = std::numeric_limits<float>::infinity();
  const Result<DelegatedStep> step = soloist.finish(0.5, Time(250));
  ASSERT_FALSE(step.ok());
  EXPECT_EQ(step.error().code, ErrorCode::diverged);
  EXPECT_EQ(soloist.download().value().version, 1U);
}

}  // namespace
}  // namespace motley::engine

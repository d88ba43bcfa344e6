#include <gtest/gtest.h>

#include "server_device_optimizer.h"
#include "server_fixture.h"

namespace motley::ps {
namespace {

Server make_server(double clip_norm) {
  const Layout shape = layout();
  OptimizerSpec optimizer{OptimizerKind::adamw, {GroupSpec{}, GroupSpec{.weight_decay = 0.1}}};
  Snapshot start;
  start.weights = chunked(shape, noise(shape, 1));
  return *Server::make(shape, optimizer, {.kind = ScheduleKind::step, .gamma = 0.5}, clip_norm, start);
}

void leave_noise(ServerDeviceOptimizer& device, const Layout& shape, std::uint64_t seed) {
  const Flat flat = noise(shape, seed);
  for (ChunkId chunk = 0; chunk < device.sums.size(); ++chunk)
    std::ranges::copy(of(flat, shape.chunks()[chunk]), device.sums[chunk].begin());
}

/// Where the arithmetic is, and with what numbers it was asked for.
class Watched final : public DeviceOptimizer {
 public:
  Status settle(const Snapshot& state, OptimizerKind) override {
    settled = state;
    return {};
  }
  Result<StepNumbers> reduce(double, std::uint64_t) override { return StepNumbers{}; }
  Status update(std::span<const StepScalars> groups, float by) override {
    rates.push_back(groups[0].lr);
    factors.push_back(by);
    return {};
  }
  Result<Snapshot> download(bool) override { return settled; }
  void leave() override {}

  Snapshot settled;
  std::vector<float> rates, factors;
};

TEST(ServerResident, StepsElsewhereAreThoseOfTheServerItself) {
  for (const double clip_norm : {0.0, 0.5}) {
    Server here = make_server(clip_norm), elsewhere = make_server(clip_norm);
    ServerDeviceOptimizer device(make_server(clip_norm));
    ASSERT_TRUE(elsewhere.settle(device).ok());
    for (std::uint64_t step = 0; step < 3; ++step) {
      leave_noise(device, here.layout(), 10 + step);
      for (ChunkId chunk = 0; chunk < device.sums.size(); ++chunk) {
        const std::span<const float> sum = device.sums[chunk];
        here.reduce(chunk, {&sum, 1}, 8, 8);
      }
      const double norm = here.gradient_norm();
      ASSERT_TRUE(here.close_gradient().ok());
      for (ChunkId chunk = 0; chunk < device.sums.size(); ++chunk) here.apply(chunk);
      here.finish_step();
      const Result<StepNumbers> found = device.reduce(8, 8);
      ASSERT_TRUE(found.ok());
      ASSERT_TRUE(elsewhere.step_at(device, found->norm).ok());
      EXPECT_EQ(clip_norm > 0 ? found->norm : norm, norm);
      EXPECT_EQ(elsewhere.version(), step + 1);
    }
    const Result<Snapshot> downloaded = elsewhere.download(device);
    ASSERT_TRUE(downloaded.ok());
    EXPECT_EQ(downloaded->version, 3U);
    Server after = make_server(clip_norm);
    after.adopt(*downloaded);
    EXPECT_EQ(flat_weights(after), flat_weights(here));
  }
}

TEST(ServerResident, EachStepHasItsNumbers) {
  Server server = make_server(0);
  Watched device;
  ASSERT_TRUE(server.settle(device).ok());
  ASSERT_TRUE(server.step_at(device, 4).ok());
  ASSERT_TRUE(server.step_at(device, 4).ok());
  // AdamW's first steps correct by 1 - 0.9 and 1 - 0.81; the schedule halves.
  EXPECT_NEAR(device.rates[1] / device.rates[0], 0.5 * 0.1 / 0.19, 1e-6);
  EXPECT_EQ(device.factors, (std::vector<float>{1, 1}));
}

TEST(ServerResident, ClipsByItsOwnNormOrThatOfTheStepBefore) {
  Server own = make_server(1), before = make_server(1);
  before.clip_by_step_before(2);
  Watched device;
  ASSERT_TRUE(own.step_at(device, 4).ok());
  ASSERT_TRUE(before.step_at(device, 4).ok());
  ASSERT_TRUE(before.step_at(device, 4).ok());
  ASSERT_TRUE(own.step_at(device, 0.25).ok());
  ASSERT_EQ(device.factors.size(), 4U);
  EXPECT_NEAR(device.factors[0], 0.25, 1e-6);
  EXPECT_NEAR(device.factors[1], 0.5, 1e-6);
  EXPECT_NEAR(device.factors[2], 0.25, 1e-6);
  EXPECT_EQ(device.factors[3], 1);
  EXPECT_EQ(before.download(device)->norm_before, 4);
}

TEST(ServerResident, StepsThatWereNotBroughtAreNoneOfTheState) {
  Server server = make_server(0);
  const std::vector<SharedBytes> weights = chunked(server.layout(), flat_weights(server));
  Watched device;
  ASSERT_TRUE(server.settle(device).ok());
  for (int lost = 0; lost < 3; ++lost) ASSERT_TRUE(server.step_at(device, 4).ok());
  ASSERT_TRUE(server.rebase(0, weights, false).ok());
  ASSERT_TRUE(server.step_at(device, 4).ok());
  EXPECT_EQ(device.rates[3], device.rates[0]);
  ASSERT_TRUE(server.rebase(1, weights, false).ok());
  ASSERT_TRUE(server.step_at(device, 4).ok());
  server.adopt(*server.download(device));
  ASSERT_TRUE(server.rebase(1, weights, false).ok());
  ASSERT_TRUE(server.step_at(device, 4).ok());
  // The second after one that was kept: 1 - 0.81 in place of 1 - 0.9.
  EXPECT_NEAR(device.rates[5] / device.rates[4], 0.1 / 0.19, 1e-6);
}

}  // namespace
}  // namespace motley::ps

#include "engine/local/local_steps.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "../../ps/server_device_optimizer.h"

namespace motley::engine {
namespace {

/// Sizes of the steps that a lease of so many samples is made in.
std::vector<std::uint64_t> steps_of(std::uint64_t count, std::uint64_t steps, std::uint64_t grain) {
  LayoutEntry weight;
  weight.name = "w";
  weight.shape = {4};
  const Layout layout = *Layout::make({weight});
  LocalRules rules{.optimizer = {OptimizerKind::sgd, {{}}}, .schedule = {}, .batch = 64, .samples = 1 << 20};
  rules.grain = grain;
  LocalSteps local(layout, rules);
  const std::vector<float> gradient(layout.chunks()[0].elements);
  TaskOrder order;
  order.count = count;
  order.local_steps = steps;
  EXPECT_TRUE(local.open(order, {SharedBytes::copy_of(std::as_bytes(std::span(gradient)))}, nullptr).ok());
  std::vector<std::uint64_t> found;
  while (local.more()) {
    const LocalSteps::Part part = local.part();
    found.push_back(part.count);
    local.begin(part.count, static_cast<double>(part.count), 1);
    local.ready(0, gradient);
    Outcome outcome;
    outcome.count = part.count;
    if (!local.took(outcome).ok()) break;
  }
  return found;
}

using Sizes = std::vector<std::uint64_t>;

TEST(LocalSteps, AreOfEqualSizeWhereNothingActsOnGroups) {
  EXPECT_EQ(steps_of(12, 3, 1), (Sizes{4, 4, 4}));
  EXPECT_EQ(steps_of(10, 4, 1), (Sizes{2, 3, 2, 3}));
  EXPECT_EQ(steps_of(2, 4, 1), (Sizes{1, 1}));
}

TEST(LocalSteps, HaveWholeGroupsAndTheLastWhatIsLeft) {
  EXPECT_EQ(steps_of(128, 2, 32), (Sizes{64, 64}));
  EXPECT_EQ(steps_of(100, 3, 32), (Sizes{32, 32, 36}));
  EXPECT_EQ(steps_of(65, 65, 32), (Sizes{32, 33}));
  EXPECT_EQ(steps_of(33, 4, 32), (Sizes{33}));
  EXPECT_EQ(steps_of(8, 4, 32), (Sizes{8}));
}

/// Steps of a worker whose gradient is always 1, at a rate of 0.5.
class OverlappedSteps : public testing::Test {
 protected:
  OverlappedSteps() {
    LayoutEntry weight;
    weight.name = "w";
    weight.shape = {4};
    layout.emplace(*Layout::make({weight}));
    ps::GroupSpec group;
    group.lr = 0.5;
    local.emplace(*layout, LocalRules{.optimizer = {OptimizerKind::sgd, {group}},
                                      .schedule = {},
                                      .clip_norm = 0,
                                      .batch = 64,
                                      .samples = 1 << 20});
    order.version = 7;
    order.count = 8;
    order.local_steps = 4;
  }
  std::vector<SharedBytes> all(float value) const {
    const std::vector<float> values(layout->chunks()[0].elements, value);
    return {SharedBytes::copy_of(std::as_bytes(std::span(values)))};
  }
  void step() {
    const std::vector<float> sums(layout->chunks()[0].elements, static_cast<float>(local->part().count));
    Outcome outcome;
    outcome.count = local->part().count;
    local->begin(outcome.count, static_cast<double>(outcome.count), 1);
    if (!local->resident()) local->ready(0, sums);
    ASSERT_TRUE(local->took(outcome).ok());
  }
  void round(float base) {
    ASSERT_TRUE(local->open(order, all(base), nullptr).ok());
    while (local->more()) step();
    ASSERT_TRUE(local->close().ok());
  }
  bool goes_overlapped() {
    const Result<bool> overlapped = local->open_overlapped(order, nullptr);
    return overlapped.ok() && *overlapped;
  }
  void next_order() {
    ++order.version;
    order.pass_first += 64 * 4;
    order.overlapped = 2;
  }

  std::optional<Layout> layout;
  std::optional<LocalSteps> local;
  TaskOrder order;
};

TEST_F(OverlappedSteps, GoOnFromTheWeightsOfTheRoundAndHowFarTheyLed) {
  round(0);
  EXPECT_EQ(local->get(0)[0], -2);
  next_order();
  ASSERT_TRUE(goes_overlapped());
  EXPECT_TRUE(local->waits());
  EXPECT_EQ(local->get(0)[0], -2);
  step();
  EXPECT_FALSE(local->made_all_overlapped());
  step();
  EXPECT_TRUE(local->made_all_overlapped());
  ASSERT_TRUE(local->rebase(all(10)).ok());
  EXPECT_FALSE(local->waits());
  EXPECT_EQ(local->overlapped(), 2U);
  EXPECT_EQ(local->get(0)[0], 9);
  while (local->more()) step();
  ASSERT_TRUE(local->close().ok());
  std::vector<float> change(layout->chunks()[0].elements);
  local->change(0, change);
  EXPECT_EQ(change[0], 8 * 2) << "each step counts once";
}

TEST_F(OverlappedSteps, OnADeviceMoveOnThere) {
  ps::GroupSpec group;
  group.lr = 0.5;
  ps::ServerDeviceOptimizer device(*ps::Server::make(*layout, {OptimizerKind::sgd, {group}}, {}, 0,
                                                     {.version = 0, .weights = all(0), .optimizer = {}}));
  const auto step_on_device = [&] {
    device.sums[0].assign(layout->chunks()[0].elements, static_cast<float>(local->part().count));
    step();
  };
  ASSERT_TRUE(local->open(order, all(0), &device).ok());
  while (local->more()) step_on_device();
  ASSERT_TRUE(local->close().ok());
  next_order();
  const Result<bool> overlapped = local->open_overlapped(order, &device);
  ASSERT_TRUE(overlapped.ok() && *overlapped && local->resident());
  step_on_device();
  ASSERT_TRUE(local->rebase(all(10)).ok());
  EXPECT_TRUE(local->resident());
  while (local->more()) step_on_device();
  ASSERT_TRUE(local->close().ok());
  EXPECT_EQ(local->get(0)[0], 8);
  EXPECT_TRUE(local->take_settled());
}

TEST_F(OverlappedSteps, BeginOnlyWhereTheRoundBeforeWasMade) {
  order.overlapped = 2;
  EXPECT_FALSE(goes_overlapped()) << "nothing was made";
  round(0);
  EXPECT_FALSE(goes_overlapped()) << "of the same round";
  next_order();
  next_order();
  EXPECT_FALSE(goes_overlapped()) << "of the round after the next";
  --order.version;
  order.overlapped = 0;
  EXPECT_FALSE(goes_overlapped()) << "it is not to";
  order.overlapped = 1;
  EXPECT_TRUE(goes_overlapped());
  step();
  local->drop();
  ++order.version;
  EXPECT_FALSE(goes_overlapped()) << "the round before came to nothing";
}

TEST_F(OverlappedSteps, OfWhichTheFirstHaveNoSamplesWaitForTheWeights) {
  round(0);
  next_order();
  order.count = 1;
  ASSERT_TRUE(goes_overlapped());
  EXPECT_TRUE(local->made_all_overlapped()) << "its sample is of the last step";
  ASSERT_TRUE(local->rebase(all(1)).ok());
  step();
  EXPECT_FALSE(local->more());
}

}  // namespace
}  // namespace motley::engine

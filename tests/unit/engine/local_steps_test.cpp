#include "engine/local_steps.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace motley::engine

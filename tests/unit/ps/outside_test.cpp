// Optimizers and learning rates that come from elsewhere.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ps/server.h"

namespace motley::ps {
namespace {

using testing::ElementsAre;

Layout small_layout() {
  LayoutEntry weight, mean, var;
  weight.name = "weight";
  weight.shape = {4};
  mean.name = "running_mean";
  mean.shape = {1};
  mean.kind = TensorKind::running_mean;
  mean.momentum = 0.5F;
  var = mean;
  var.name = "running_var";
  var.kind = TensorKind::running_var;
  return *Layout::make({weight, mean, var});
}

/// Heavy ball, one chunk of weights: its state is its own.
class Momentum final : public OutsideOptimizer {
 public:
  Status restore(std::uint64_t version, const State& state) override {
    if (version == 0) return {};
    const auto found = state.find("speed");
    if (found == state.end()) return Error{ErrorCode::input, "no speed", ""};
    const auto values = found->second.at(0).floats();
    speed.assign(values.begin(), values.end());
    return {};
  }
  State state() override { return {{"speed", {SharedBytes::copy_of(std::as_bytes(std::span(speed))), SharedBytes()}}}; }
  Status step(std::span<const GroupSpec> groups, std::span<const SharedBytes> weights,
              std::span<const SharedBytes> gradients, std::span<MutableBytes> new_weights) override {
    if (fails) return Error{ErrorCode::internal, "it broke", ""};
    rates.push_back(groups[0].lr);
    speed.resize(weights[0].floats().size());
    for (std::size_t i = 0; i < speed.size(); ++i) {
      speed[i] = 0.5F * speed[i] + gradients[0].floats()[i];
      new_weights[0].floats()[i] = weights[0].floats()[i] - static_cast<float>(groups[0].lr) * speed[i];
    }
    return {};
  }
  std::vector<float> speed;
  std::vector<double> rates;
  bool fails = false;
};

struct OutsideTest : testing::Test {
  std::shared_ptr<Momentum> optimizer = std::make_shared<Momentum>();

  static Snapshot fresh() {
    Snapshot start;
    const Layout shape = small_layout();
    for (const Chunk& chunk : shape.chunks()) {
      const std::vector<float> ones(chunk.elements, 1);
      start.weights.push_back(SharedBytes::copy_of(std::as_bytes(std::span(ones))));
    }
    return start;
  }
  Result<Server> made(const Snapshot& start, double clip_norm = 0) {
    OptimizerSpec spec;
    spec.kind = OptimizerKind::outside;
    spec.groups.resize(1);
    spec.groups[0].lr = 0.25;
    spec.outside = optimizer;
    return Server::make(small_layout(), spec, {}, clip_norm, start);
  }
  static void step(Server& server, float gradient) {
    for (ChunkId c = 0; c < 2; ++c) {
      // Padding is zero, as in any gradient.
      std::vector<float> sum(server.layout().chunks()[c].elements);
      std::fill_n(sum.begin(), c == 0 ? 4 : 1, 2 * gradient);
      const std::span<const float> part(sum);
      server.reduce(c, {&part, 1}, 2, 2);
    }
    EXPECT_TRUE(server.close_gradient().ok());
    for (ChunkId c = 0; c < 2; ++c) server.apply(c);
    server.finish_step();
  }
};

TEST_F(OutsideTest, StepsOnceAndLeavesTheStatisticsAlone) {
  Server server = *made(fresh());
  EXPECT_TRUE(server.outside());
  step(server, 1);
  EXPECT_EQ(server.weights(0).floats()[3], 0.75F);
  EXPECT_EQ(server.weights(1).floats()[0], 1.0F);  // half of one and half of one
  step(server, 1);
  EXPECT_EQ(server.weights(0).floats()[0], 0.75F - 0.25F * 1.5F);
}

TEST_F(OutsideTest, SeesClippedGradients) {
  Server server = *made(fresh(), 1.0);
  step(server, 1);
  EXPECT_NEAR(server.weights(0).floats()[0], 1 - 0.25 * 0.5, 1e-6);
}

TEST_F(OutsideTest, GoesOnFromASnapshot) {
  Server server = *made(fresh());
  step(server, 1);
  const Snapshot kept = server.snapshot();
  step(server, 2);
  const std::vector<float> expected(server.weights(0).floats().begin(), server.weights(0).floats().end());
  optimizer = std::make_shared<Momentum>();
  Server again = *made(kept);
  step(again, 2);
  EXPECT_THAT(again.weights(0).floats(), testing::ElementsAreArray(expected));
  Snapshot without = kept;
  without.optimizer.clear();
  EXPECT_EQ(made(without).error().message, "no speed");
}

TEST_F(OutsideTest, AFailureIsPassedOn) {
  Server server = *made(fresh());
  for (ChunkId c = 0; c < 2; ++c) {
    const std::vector<float> zeros(server.layout().chunks()[c].elements);
    const std::span<const float> part(zeros);
    server.reduce(c, {&part, 1}, 2, 2);
  }
  optimizer->fails = true;
  EXPECT_EQ(server.close_gradient().error().message, "it broke");
}

TEST_F(OutsideTest, RatesFollowResults) {
  Server server = *made(fresh());
  server.follow({1, {0.125}});
  server.follow({2, {0.5}});
  EXPECT_EQ(server.learning_rate(0), 0.25);
  step(server, 1);
  EXPECT_EQ(server.learning_rate(0), 0.125);
  server.follow({2, {0.0625}});  // said again
  step(server, 1);
  step(server, 1);
  for (std::uint64_t version = 3; version < 6; ++version) {
    server.follow(version, 1.0 / static_cast<double>(1U << version));
    step(server, 1);
  }
  EXPECT_THAT(optimizer->rates, ElementsAre(0.25, 0.125, 0.0625, 0.125, 0.0625, 0.03125));
}

}  // namespace
}  // namespace motley::ps

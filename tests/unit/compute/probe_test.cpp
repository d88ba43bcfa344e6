#include "compute/probe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "fake_model.h"

namespace motley::compute {
namespace {

/// The gradient of a sample is its number and one, times the weights, but for what is wrong with the device.
class Device final : public DeviceModel {
 public:
  explicit Device(Layout layout) : layout_(std::move(layout)), weights_(layout_.flat_elements()), sums_(weights_) {}
  [[nodiscard]] const Layout& layout() const override { return layout_; }
  [[nodiscard]] Capabilities capabilities() const override { return {"cpu", "arithmetic", 8}; }
  Status open(const Task& task, Arriving&) override {
    task_ = &task;
    return {};
  }
  Status load(ChunkId first, std::span<const std::span<const float>> chunks) override {
    auto at = weights_.begin() + static_cast<std::ptrdiff_t>(layout_.chunks()[first].offset);
    for (const auto& chunk : chunks) at = std::ranges::copy(chunk, at).out;
    return {};
  }
  Status start() override {
    std::ranges::fill(sums_, 0.0F);
    loss_ = {};
    return {};
  }
  Result<Forward> forward(const MicroBatch& samples) override {
    if (fails) return Error{ErrorCode::memory, "no memory", ""};
    for (const std::uint64_t sample : samples.indices) {
      for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i] += static_cast<float>(sample + 1) * weights_[i];
      loss_.weight += 1;
      loss_.loss_sum += static_cast<double>(sample + 1) * weights_[0];
    }
    for (std::size_t i = 0; i < layout_.placements().size(); ++i) spoil(i, layout_.placements()[i]);
    return Forward::computed;
  }
  Status backward(Finals*) override { return {}; }
  Result<Sums> sums() override { return loss_; }
  Status finish(std::uint64_t) override { return {}; }
  [[nodiscard]] std::span<const float> gradient(ChunkId chunk) const override {
    return std::span(sums_).subspan(layout_.chunks()[chunk].offset, layout_.chunks()[chunk].elements);
  }

  std::array<float, 3> factors{1, 1, 1};  // of placements
  bool draws = false, fails = false;
  int wrong_probe = -1;  // the only one that the factors are in

 private:
  void spoil(std::size_t placement, const Placement& place) {
    const bool wrong = wrong_probe < 0 || probes_ == wrong_probe;
    if (placement + 1 == layout_.placements().size()) ++probes_;
    for (float& value : std::span(sums_).subspan(place.offset, place.elements)) {
      if (wrong) value *= factors[placement];
      if (draws) value += static_cast<float>(task_->seed);
    }
  }

  Layout layout_;
  std::vector<float> weights_, sums_;
  Sums loss_;
  const Task* task_ = nullptr;
  int probes_ = 0;
};

class ProbeTest : public testing::Test {
 protected:
  static std::vector<float> numbers(Device& device) {
    TaskLoop loop(device);
    constexpr std::array<std::uint64_t, kProbeSamples> kSamples{0, 1, 2, 3};
    Task like;
    like.indices = kSamples;
    like.micro_batch = 8;
    like.seed = 7;
    const auto found = probe(loop, device.layout(), like);
    EXPECT_TRUE(found);
    return *found;
  }
  static ProbeDifference difference(Device& device) {
    Device sound(three_chunks());
    const std::vector<float> one = numbers(device), other = numbers(sound);
    EXPECT_EQ(one.size(), probe_numbers(device.layout()));
    const auto found = compare(device.layout(), one, other);
    EXPECT_TRUE(found.has_value());
    return found.value_or(ProbeDifference{});
  }
  Device device{three_chunks()};
};

TEST_F(ProbeTest, DevicesThatComputeAlikeDoNotDiffer) {
  const ProbeDifference found = difference(device);
  EXPECT_EQ(found.worst, 0);
  EXPECT_EQ(found.tensors, 0U);
}

TEST_F(ProbeTest, RoundingIsNoDifference) {
  device.factors = {1 + 2e-6F, 1, 1 - 2e-6F};
  EXPECT_LE(difference(device).worst, kProbeTolerance / 10);
}

TEST_F(ProbeTest, TheTensorThatIsTheFurthestApartIsNamed) {
  device.factors = {1.01F, 1.25F, 1};
  const ProbeDifference found = difference(device);
  EXPECT_NEAR(found.worst, 0.2, 1e-3);  // of the larger one
  EXPECT_EQ(found.tensor, "second");
  EXPECT_EQ(found.first, "first");
  EXPECT_EQ(found.tensors, 2U);
}

TEST_F(ProbeTest, WhatIsWrongOnceMayBeAKink) {
  device.wrong_probe = 1;
  device.factors = {2, 2, 2};
  EXPECT_EQ(difference(device).tensors, 0U);
}

TEST_F(ProbeTest, WhatIsNotFiniteOnOneSideIsInfinitelyFar) {
  device.factors[1] = std::numeric_limits<float>::quiet_NaN();
  Device sound(three_chunks());
  std::vector<float> one = numbers(sound);
  one[3] = std::numeric_limits<float>::quiet_NaN();
  // One probe of three: the others count.
  EXPECT_EQ(compare(device.layout(), one, numbers(sound))->worst, 0);
  std::ranges::fill(one, std::numeric_limits<float>::infinity());
  EXPECT_FALSE(compare(device.layout(), one, numbers(sound))->worst <= 1);
  EXPECT_FALSE(compare(device.layout(), one, one).has_value()) << "on both sides it says nothing";
}

TEST_F(ProbeTest, WhoDrawsSaysNothing) {
  device.draws = true;
  EXPECT_TRUE(numbers(device).empty());
  EXPECT_FALSE(compare(device.layout(), {}, {}).has_value());
}

TEST_F(ProbeTest, WhatFailsIsTold) {
  device.fails = true;
  TaskLoop loop(device);
  constexpr std::array<std::uint64_t, 1> kSamples{0};
  Task like;
  like.indices = kSamples;
  like.micro_batch = 1;
  EXPECT_EQ(probe(loop, device.layout(), like).error().code, ErrorCode::memory);
}

TEST_F(ProbeTest, WeightsAreThoseOfAnyMachine) {
  const std::vector<float> found = numbers(device);
  // The sum of the loss follows from the first weight alone: bits of the golden run.
  EXPECT_EQ(found[0], 0) << "state";
  EXPECT_EQ(found[1], 4) << "weight";
  EXPECT_FLOAT_EQ(found[2], -0.69942689F);
}

}  // namespace
}  // namespace motley::compute

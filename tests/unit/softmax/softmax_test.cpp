#include "softmax/softmax.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>

#include "compute/task_loop.h"

namespace motley::softmax {
namespace {

using ::testing::HasSubstr;

class FlatWeights final : public Weights {
 public:
  FlatWeights(const Layout& layout, std::vector<float> flat) : layout_(layout), flat_(std::move(flat)) {}
  std::span<const float> get(ChunkId chunk) override {
    return std::span(flat_).subspan(layout_.chunks()[chunk].offset, layout_.chunks()[chunk].elements);
  }
  std::vector<float>& flat() { return flat_; }

 private:
  const Layout& layout_;
  std::vector<float> flat_;
};

class RecordingSink final : public Sink {
 public:
  explicit RecordingSink(const Layout& layout) : gradient(layout.flat_elements()), layout_(layout) {}
  void progress(std::uint64_t done) noexcept override { progressed.push_back(done); }
  void begin(std::uint64_t count, double weight_sum, double losses) noexcept override {
    EXPECT_FALSE(begun);
    begun = true;
    begin_count = count;
    weight = weight_sum;
    loss_sum = losses;
  }
  void ready(ChunkId chunk, std::span<const float> sum) noexcept override {
    EXPECT_TRUE(begun);
    EXPECT_EQ(sum.size(), layout_.chunks()[chunk].elements);
    std::copy(sum.begin(), sum.end(), gradient.begin() + static_cast<std::ptrdiff_t>(layout_.chunks()[chunk].offset));
    ++chunks;
  }

  std::vector<std::uint64_t> progressed;
  bool begun = false;
  std::uint64_t begin_count = 0;
  double weight = 0, loss_sum = 0;
  std::vector<float> gradient;
  std::size_t chunks = 0;

 private:
  const Layout& layout_;
};

class Limit final : public Stop {
 public:
  explicit Limit(std::uint64_t limit) : limit_(limit) {}
  [[nodiscard]] std::uint64_t limit() const noexcept override { return limit_; }

 private:
  std::uint64_t limit_;
};

class Softmax : public ::testing::Test {
 protected:
  static std::shared_ptr<const Blobs> make(Part part) { return std::make_shared<Blobs>(BlobSizes{500, 6, 4}, part); }
  /// Runs positions [0, kCount) and keeps what the sink saw in sink_.
  Outcome run(PassKind kind, std::uint32_t micro_batch, std::uint64_t limit = kCount) {
    sink_ = std::make_unique<RecordingSink>(model_->layout());
    const Limit stop(limit);
    const auto outcome = loop_.run({kind, 0, indices_, 0, micro_batch, 1}, weights_, *sink_, stop);
    EXPECT_TRUE(outcome) << outcome.error().message;
    return *outcome;
  }

  static constexpr std::uint64_t kCount = 100;
  std::unique_ptr<SoftmaxRegression> model_ = *SoftmaxRegression::make(make(Part::train), make(Part::test), 5);
  compute::TaskLoop loop_{*model_};
  FlatWeights weights_{model_->layout(), model_->initial_weights()};
  std::vector<std::uint64_t> indices_ = [] {
    std::vector<std::uint64_t> indices(kCount);
    std::iota(indices.begin(), indices.end(), 17U);
    return indices;
  }();
  std::unique_ptr<RecordingSink> sink_;
};

TEST_F(Softmax, HasAWeightAndABias) {
  const auto entries = model_->layout().entries();
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].name, "weight");
  EXPECT_EQ(entries[0].shape, (std::vector<std::int64_t>{4, 6}));
  EXPECT_EQ(entries[1].name, "bias");
  EXPECT_EQ(entries[1].shape, std::vector<std::int64_t>{4});
}

TEST_F(Softmax, InitialWeightsFollowTheSeed) {
  const auto weights_of = [&](std::uint64_t seed) {
    return (*SoftmaxRegression::make(make(Part::train), nullptr, seed))->initial_weights();
  };
  EXPECT_EQ(weights_of(5), model_->initial_weights());
  EXPECT_NE(weights_of(6), model_->initial_weights());
  EXPECT_EQ(weights_of(0), std::vector<float>(model_->layout().flat_elements()));
}

TEST_F(Softmax, GradientsAreSlopesOfTheLoss) {
  run(PassKind::train, 32);
  const std::vector<float> gradient = sink_->gradient;
  const std::vector<float> base = weights_.flat();
  constexpr float kStep = 1.0F / 64;
  for (const Placement& placement : model_->layout().placements()) {
    for (std::size_t i = placement.offset; i < placement.offset + placement.elements; ++i) {
      weights_.flat() = base;
      weights_.flat()[i] += kStep;
      const double above = run(PassKind::train, 32).loss_sum;
      weights_.flat()[i] -= 2 * kStep;
      const double below = run(PassKind::train, 32).loss_sum;
      EXPECT_NEAR((above - below) / (2.0 * kStep), gradient[i], 0.02) << i;
    }
  }
}

TEST_F(Softmax, TheMicroBatchDoesNotMatter) {
  const Outcome once = run(PassKind::train, 1000);
  const std::vector<float> gradient = sink_->gradient;
  for (const std::uint32_t micro_batch : {1U, 7U, 100U}) {
    const Outcome outcome = run(PassKind::train, micro_batch);
    EXPECT_EQ(outcome.loss_sum, once.loss_sum);
    EXPECT_EQ(sink_->gradient, gradient);
  }
}

TEST_F(Softmax, ReportsAsTheContractSays) {
  const Outcome outcome = run(PassKind::train, 40);
  EXPECT_EQ(sink_->progressed, (std::vector<std::uint64_t>{40, 80, 100}));
  EXPECT_TRUE(sink_->begun);
  EXPECT_EQ(sink_->begin_count, 100U);
  EXPECT_EQ(sink_->weight, 100.0);
  EXPECT_EQ(sink_->loss_sum, outcome.loss_sum);
  EXPECT_EQ(sink_->chunks, model_->layout().chunks().size());
  EXPECT_EQ(outcome.count, 100U);
  EXPECT_EQ(outcome.weight, 100.0);
}

TEST_F(Softmax, FromTheEndItComputesTheLastSamples) {
  const auto run_from_end = [&](std::uint64_t limit, std::uint32_t micro_batch) {
    sink_ = std::make_unique<RecordingSink>(model_->layout());
    const auto outcome =
        loop_.run({PassKind::train, 0, indices_, 0, micro_batch, 1, true}, weights_, *sink_, Limit(limit));
    EXPECT_TRUE(outcome);
    return outcome->loss_sum;
  };
  const double loss = run_from_end(30, 16);
  const std::vector<float> gradient = sink_->gradient;
  run_from_end(30, 7);
  EXPECT_EQ(sink_->gradient, gradient) << "the micro-batch makes no difference";
  indices_.erase(indices_.begin(), indices_.end() - 30);
  EXPECT_NEAR(run(PassKind::train, 16).loss_sum, loss, 1e-9);
  for (std::size_t i = 0; i < gradient.size(); ++i) EXPECT_NEAR(sink_->gradient[i], gradient[i], 1e-4);
}

TEST_F(Softmax, LearnsTheBlobs) {
  const auto samples = make(Part::train);
  indices_.resize(samples->size());
  std::iota(indices_.begin(), indices_.end(), 0U);
  const double untrained = run(PassKind::evaluate, 64, 500).loss_sum;
  for (int step = 0; step < 60; ++step) {
    const Outcome outcome = run(PassKind::train, 64, 500);
    for (std::size_t i = 0; i < weights_.flat().size(); ++i) {
      weights_.flat()[i] -= 0.5F * sink_->gradient[i] / static_cast<float>(outcome.weight);
    }
  }
  const Outcome trained = run(PassKind::evaluate, 64, 500);
  EXPECT_LT(trained.loss_sum, 0.7 * untrained);
  EXPECT_GT(trained.correct, 350U);
  EXPECT_LE(trained.correct, 500U);
}

TEST_F(Softmax, WithoutATestSetNothingIsEvaluated) {
  const auto without_test = SoftmaxRegression::make(make(Part::train), nullptr, 0);
  ASSERT_TRUE(without_test);
  sink_ = std::make_unique<RecordingSink>(model_->layout());
  compute::TaskLoop loop(**without_test);
  const auto outcome = loop.run({PassKind::evaluate, 0, indices_, 0, 1, 0}, weights_, *sink_, Limit(kCount));
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().message, HasSubstr("test data set"));
}

}  // namespace
}  // namespace motley::softmax

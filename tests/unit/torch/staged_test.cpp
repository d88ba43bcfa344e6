// The path of accelerators, through copies, run on the CPU, and weights that come while they are needed: both must give
// the very bits of the direct path with all weights there.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "fixtures.h"
#include "staged_cases.h"

namespace motley::torch_adapter {
namespace {

/// Has no chunk until it is asked for, and then that one alone; or never has the last that is asked for.
class LateWeights final : public Weights {
 public:
  LateWeights(Weights& from, std::size_t chunks, bool abandoned = false)
      : from_(from), came_(chunks), abandoned_(abandoned) {}
  std::span<const float> get(ChunkId chunk) override {
    if (!came_[chunk]) asked.push_back(chunk);
    if (abandoned_ && asked.size() == came_.size()) return {};
    came_[chunk] = true;
    return from_.get(chunk);
  }
  [[nodiscard]] bool here(ChunkId chunk) const override { return came_[chunk]; }

  std::vector<ChunkId> asked;

 private:
  Weights& from_;
  std::vector<bool> came_;
  bool abandoned_;
};

/// Of a task that was abandoned before it began.
class GoneWeights final : public Weights {
 public:
  std::span<const float> get(ChunkId) override { return {}; }
};

class StagedTest : public testing::TestWithParam<Case> {
 protected:
  struct Side {
    Side(const Case& made, bool staged) : state(std::move(initial_state(made.spec)).value()), weights(state.weights) {
      Options options = one_thread();
      options.staged = staged;
      device = driven(made.spec, options, made.dataset, made.dataset);
    }
    /// Moves the weights, as an update would.
    void update() {
      std::vector<SharedBytes> moved;
      for (ChunkId chunk = 0; chunk < state.layout.chunks().size(); ++chunk) {
        std::vector<float> values(weights.get(chunk).begin(), weights.get(chunk).end());
        for (float& value : values) value = 0.75F * value + 0.01F;
        moved.push_back(SharedBytes::copy_of(std::as_bytes(std::span(values))));
      }
      weights = ChunkWeights(moved);
      ++version;
    }
    Outcome run(RecordingSink& sink, const Stop& stop, PassKind kind = PassKind::train) {
      return run(sink, stop, kind, weights);
    }
    Outcome run(RecordingSink& sink, const Stop& stop, PassKind kind, Weights& from) {
      const std::vector<std::uint64_t> indices = some_indices(3, 100, kStaged);
      Task task;
      task.kind = kind;
      task.version = version;
      task.indices = indices;
      task.micro_batch = 16;
      const Result<Outcome> outcome = device->loop.run(task, from, sink, stop);
      EXPECT_TRUE(outcome.ok()) << outcome.error().message;
      return outcome ? *outcome : Outcome{};
    }
    InitialState state;
    ChunkWeights weights;
    std::unique_ptr<Driven> device;
    std::uint64_t version = 0;
  };
  void expect_equal(const RecordingSink& left, const RecordingSink& right) {
    EXPECT_EQ(left.flat, right.flat);
    EXPECT_EQ(left.reported, right.reported);
    EXPECT_EQ(left.outcome.count, right.outcome.count);
    EXPECT_EQ(left.outcome.weight, right.outcome.weight);
    EXPECT_EQ(left.outcome.loss_sum, right.outcome.loss_sum);
    EXPECT_EQ(left.times_ready, right.times_ready);
    EXPECT_FALSE(left.ready_before_begin);
  }
  Side direct{GetParam(), false}, staged{GetParam(), true};
};

TEST_P(StagedTest, GradientsAndLossesOfSeveralVersionsAreEqual) {
  for (int step = 0; step < 3; ++step) {
    RecordingSink left(staged.state.layout), right(direct.state.layout);
    const Outcome outcome = staged.run(left, FixedStop(100));
    direct.run(right, FixedStop(100));
    expect_equal(left, right);
    EXPECT_EQ(outcome.count, 100U);
    for (const int times : left.times_ready) EXPECT_EQ(times, 1);
    staged.update();
    direct.update();
  }
}

TEST_P(StagedTest, ATrimFreezesTheSameSamples) {
  RecordingSink left(staged.state.layout), right(direct.state.layout);
  for (const auto& [side, sink] : {std::pair(&staged, &left), std::pair(&direct, &right)}) {
    FixedStop stop(100);
    sink->on_progress = [&stop](std::uint64_t done) { stop.at = done >= 32 ? 20 : stop.at; };
    side->run(*sink, stop);
  }
  expect_equal(left, right);
  EXPECT_GE(left.outcome.count, 32U);
  EXPECT_LT(left.outcome.count, 100U);
}

TEST_P(StagedTest, AbandonedTasksContributeNothing) {
  FixedStop stop(100);
  RecordingSink sink(staged.state.layout);
  sink.on_progress = [&](std::uint64_t) { stop.at = 0; };
  EXPECT_EQ(staged.run(sink, stop).count, 0U);
  EXPECT_EQ(sink.begun, 0);
  EXPECT_TRUE(sink.order.empty());
}

TEST_P(StagedTest, EvaluationIsEqual) {
  RecordingSink left(staged.state.layout), right(direct.state.layout);
  const Outcome a = staged.run(left, FixedStop(100), PassKind::evaluate);
  const Outcome b = direct.run(right, FixedStop(100), PassKind::evaluate);
  EXPECT_EQ(a.loss_sum, b.loss_sum);
  EXPECT_EQ(a.correct, b.correct);
  EXPECT_EQ(a.count, 100U);
}

TEST_P(StagedTest, WeightsMayComeAsTheForwardPassReadsThem) {
  Side whole{GetParam(), false};
  const std::size_t chunks = whole.state.layout.chunks().size();
  RecordingSink expected(whole.state.layout);
  whole.run(expected, FixedStop(100));
  for (Side* side : {&direct, &staged}) {
    for (const PassKind kind : {PassKind::train, PassKind::evaluate}) {
      LateWeights late(side->weights, chunks);
      RecordingSink sink(side->state.layout);
      side->run(sink, FixedStop(100), kind, late);
      // Statistics of batches before are not read in training.
      const bool all = kind == PassKind::evaluate || !whole.state.layout.has_statistics();
      EXPECT_EQ(late.asked.size(), all ? chunks : chunks - 1);
      if (kind == PassKind::train) expect_equal(sink, expected);
      ++side->version;  // loaded anew
    }
  }
}

TEST_P(StagedTest, AfterATaskWithoutAllWeightsTheNextLoadsThem) {
  Side whole{GetParam(), false};
  const std::size_t chunks = whole.state.layout.chunks().size();
  RecordingSink expected(whole.state.layout);
  whole.update();
  whole.run(expected, FixedStop(100));
  for (Side* side : {&direct, &staged}) {
    RecordingSink sink(side->state.layout), again(side->state.layout);
    side->run(sink, FixedStop(100));
    side->update();
    LateWeights none(side->weights, chunks, true);
    EXPECT_EQ(side->run(sink, FixedStop(100), PassKind::evaluate, none).count, 0U);
    GoneWeights gone;
    EXPECT_EQ(side->run(sink, FixedStop(100), PassKind::train, gone).count, 0U);
    side->run(again, FixedStop(100));
    expect_equal(again, expected);
  }
}

TEST_P(StagedTest, LargeMicroBatchesGatheredInPartsAreEqual) {
  const std::uint64_t samples = 512;  // of the CNN: three threads' worth
  const std::vector<std::uint64_t> indices = some_indices(1, samples, kStaged);
  RecordingSink left(staged.state.layout), right(direct.state.layout);
  for (const auto& [side, sink] : {std::pair(&staged, &left), std::pair(&direct, &right)}) {
    Task task;
    task.indices = indices;
    task.micro_batch = samples;
    EXPECT_TRUE(side->device->loop.run(task, side->weights, *sink, FixedStop(samples)).ok());
  }
  expect_equal(left, right);
}

INSTANTIATE_TEST_SUITE_P(Models, StagedTest, testing::Values(cnn(), mlp_with_values(), batch_norm_and_dropout(), gpt()),
                         [](const auto& made) { return made.param.name; });

TEST(Precision, TensorFloatsAreOff) {
  const Case made = mlp_with_values();
  ASSERT_TRUE(make_device_model(made.spec, one_thread(), made.dataset, nullptr).ok());
  EXPECT_FALSE(at::globalContext().allowTF32CuBLAS());
  EXPECT_FALSE(at::globalContext().allowTF32CuDNN());
  EXPECT_TRUE(at::globalContext().deterministicCuDNN());
}

}  // namespace
}  // namespace motley::torch_adapter

// The micro-batch follows the memory that there is.

#include "compute_bench.h"

namespace motley::runtime {
namespace {

// Weights take 100 bytes, a sample 10, and however many they are `once`.
struct Memory {
  std::uint64_t budget;
  std::uint64_t scratch = 0, once = 0;
  std::uint32_t largest = 0;  // micro-batch since it was asked
  std::vector<std::uint32_t> tried{};

  Script script() {
    return {.open = [this](const Task& task) -> Status {
      largest = static_cast<std::uint32_t>(std::min<std::uint64_t>(task.micro_batch, task.indices.size()));
      tried.push_back(largest);
      if (100 + once + 10 * largest > budget) return Error{ErrorCode::memory, "out of memory", ""};
      return {};
    }};
  }
  std::function<MemoryUse()> use() {
    return [this] {
      const std::uint64_t samples = std::exchange(largest, 0U);
      return MemoryUse{100, samples > 0 ? 100 + once + 10 * samples : 100, budget, scratch};
    };
  }
};

TEST(ComputeMemory, WithPlentyOfMemoryTheFirstLeaseHasTheDevicesMicroBatch) {
  Memory memory{1000};
  Bench bench(memory.script(), 1, {}, memory.use());
  bench.run();
  EXPECT_EQ(memory.tried, (std::vector<std::uint32_t>{1, 8}));
}

TEST(ComputeMemory, WhereMemoryIsShortTheMicroBatchDoublesFromLeaseToLease) {
  Memory memory{162};  // room for six samples
  Bench bench(memory.script(), 1, {}, memory.use());
  for (int i = 0; i < 5; ++i) {
    bench.run();
    ASSERT_TRUE(bench.outcome.has_value());
  }
  EXPECT_EQ(memory.tried, (std::vector<std::uint32_t>{1, 2, 2, 4, 4, 4, 4}));
}

TEST(ComputeMemory, WhatOthersWillWantIsLeftToThem) {
  Memory memory{162};
  Bench bench(memory.script(), 1, {}, memory.use(), 30);
  for (int i = 0; i < 3; ++i) {
    bench.run();
  }
  EXPECT_EQ(memory.tried, (std::vector<std::uint32_t>{1, 2, 2, 2, 2}));
}

TEST(ComputeMemory, ScratchSpaceCountsForMoreSamplesAndNotForOne) {
  Memory memory{162, 60};
  Bench bench(memory.script(), 1, {}, memory.use());
  EXPECT_FALSE(bench.refused.has_value());
  bench.run();
  EXPECT_EQ(memory.tried, (std::vector<std::uint32_t>{1, 2, 1}));
}

TEST(ComputeMemory, AChosenMicroBatchStaysWhereItFits) {
  // One sample alone looks as if each took what they take together; two sizes do not.
  Memory memory{300};
  memory.once = 100;
  Bench bench(memory.script(), 1, {}, memory.use(), 0, true);
  bench.run();
  EXPECT_EQ(memory.tried, (std::vector<std::uint32_t>{1, 2, 8}));
}

TEST(ComputeMemory, AChosenMicroBatchThatDoesNotFitIsNotTried) {
  Memory memory{162};
  Bench bench(memory.script(), 1, {}, memory.use(), 0, true);
  for (int i = 0; i < 2; ++i) {
    bench.run();
  }
  EXPECT_EQ(memory.tried, (std::vector<std::uint32_t>{1, 2, 2, 4}));
}

TEST(ComputeMemory, WhereLayersActOnGroupsTheSearchCountsThese) {
  Memory memory{162};  // room for three groups
  Bench bench(memory.script(), 2, {}, memory.use());
  for (int i = 0; i < 3; ++i) {
    bench.run();
    ASSERT_TRUE(bench.outcome.has_value());
  }
  EXPECT_EQ(memory.tried, (std::vector<std::uint32_t>{2, 4, 4, 4, 4}));
  Memory plenty{1000};
  Bench whole(plenty.script(), 2, {}, plenty.use());
  whole.start();
  whole.wait();
  EXPECT_EQ(plenty.tried, (std::vector<std::uint32_t>{2, 8}));
}

TEST(ComputeMemory, AModelThatDoesNotFitIsRefusedAtOnce) {
  Memory tight{109};
  Bench full(tight.script(), 1, {}, tight.use());
  ASSERT_TRUE(full.refused.has_value());
  EXPECT_EQ(full.refused->code, ErrorCode::memory);
  EXPECT_NE(full.refused->message.find("to compute one sample, found 0.0 MiB"), std::string::npos)
      << full.refused->message;
  Memory reserved{115};
  Bench others(reserved.script(), 1, {}, reserved.use(), 10);
  EXPECT_TRUE(others.refused.has_value());
  Memory grouped{150};
  Bench group(grouped.script(), 8, {}, grouped.use());
  ASSERT_TRUE(group.refused.has_value());
  EXPECT_NE(group.refused->message.find("to compute 8 samples at once"), std::string::npos) << group.refused->message;
}

TEST(ComputeMemory, AModelThatFitsWithoutItsOptimizerTrainsOnADevice) {
  Memory memory{115};  // room for one sample
  Bench host(memory.script(), 1, {}, memory.use(), 10);
  EXPECT_TRUE(host.refused.has_value());
  ps::ServerDeviceOptimizer there(two_chunk_server());
  Bench device(memory.script(), 1, {}, memory.use(), 10, false, &there);
  EXPECT_FALSE(device.refused.has_value());
}

TEST(ComputeMemory, ATrialThatFailsOtherwiseRefusesNobody) {
  Memory memory{1000};
  const auto without_weights = [open = memory.script().open](const Task& task) -> Status {
    if (task.kind == PassKind::calibrate) return Error{ErrorCode::internal, "division by zero", ""};
    return open(task);
  };
  Bench bench({.open = without_weights}, 1, {}, memory.use());
  EXPECT_FALSE(bench.refused.has_value());
  bench.run();
  EXPECT_EQ(memory.tried, (std::vector<std::uint32_t>{8}));
}

}  // namespace
}  // namespace motley::runtime

// The micro-batch follows the memory that there is.

#include "compute_bench.h"

namespace motley::runtime {
namespace {

// Weights take 100 bytes, a sample 10.
struct Memory {
  std::uint64_t budget;
  std::uint32_t largest = 0;  // micro-batch since it was asked
  std::vector<std::uint32_t> tried{};

  Script script() {
    return [this](const Task& task, Weights&, Sink&, const Stop&) -> Result<Outcome> {
      largest = static_cast<std::uint32_t>(std::min<std::uint64_t>(task.micro_batch, task.indices.size()));
      tried.push_back(largest);
      if (100 + 10 * largest > budget) return Error{ErrorCode::memory, "out of memory", ""};
      return Outcome{task.indices.size(), 1, 1, 0};
    };
  }
  std::function<MemoryUse()> use() {
    return [this] { return MemoryUse{100, 100 + 10 * std::exchange(largest, 0U), budget}; };
  }
};

TEST(ComputeMemory, WithPlentyOfMemoryTheFirstLeaseHasTheDevicesMicroBatch) {
  Memory memory{1000};
  Bench bench(memory.script(), false, {}, memory.use());
  bench.start();
  bench.wait();
  EXPECT_EQ(memory.tried, (std::vector<std::uint32_t>{1, 8}));
}

TEST(ComputeMemory, WhereMemoryIsShortTheMicroBatchDoublesFromLeaseToLease) {
  Memory memory{162};  // room for six samples
  Bench bench(memory.script(), false, {}, memory.use());
  for (int i = 0; i < 5; ++i) {
    bench.start();
    bench.wait();
    ASSERT_TRUE(bench.outcome.has_value());
  }
  EXPECT_EQ(memory.tried, (std::vector<std::uint32_t>{1, 2, 4, 4, 4, 4}));
}

TEST(ComputeMemory, WhatOthersWillWantIsLeftToThem) {
  Memory memory{162};
  Bench bench(memory.script(), false, {}, memory.use(), 30);
  for (int i = 0; i < 3; ++i) {
    bench.start();
    bench.wait();
  }
  EXPECT_EQ(memory.tried, (std::vector<std::uint32_t>{1, 2, 2, 2}));
}

TEST(ComputeMemory, AModelThatDoesNotFitIsRefusedAtOnce) {
  Memory tight{109};
  Bench full(tight.script(), false, {}, tight.use());
  ASSERT_TRUE(full.refused.has_value());
  EXPECT_EQ(full.refused->code, ErrorCode::memory);
  EXPECT_NE(full.refused->message.find("to compute one sample, found 1 MiB"), std::string::npos)
      << full.refused->message;
  Memory reserved{115};
  Bench others(reserved.script(), false, {}, reserved.use(), 10);
  EXPECT_TRUE(others.refused.has_value());
  Memory grouped{150};
  Bench group(grouped.script(), true, {}, grouped.use());
  ASSERT_TRUE(group.refused.has_value());
  EXPECT_NE(group.refused->message.find("a group of 8 samples"), std::string::npos) << group.refused->message;
}

}  // namespace
}  // namespace motley::runtime

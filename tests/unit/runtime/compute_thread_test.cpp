#include "runtime/compute_thread.h"

#include <gtest/gtest.h>

#include <future>
#include <utility>

#include "data/order.h"

namespace motley::runtime {
namespace {

using Script = std::function<Result<Outcome>(const Task&, Weights&, Sink&, const Stop&)>;

LayoutEntry entry(const char* name, std::vector<std::int64_t> shape) {
  LayoutEntry made;
  made.name = name;
  made.shape = std::move(shape);
  return made;
}

Layout two_chunks() {
  // One tensor above the limit of the small ones, one below: they lie in chunks of their own.
  Result<Layout> layout = Layout::make({entry("weight", {4096}), entry("bias", {4})});
  EXPECT_TRUE(layout);
  EXPECT_EQ(layout->chunks().size(), 2U);
  return *layout;
}

class Scripted final : public Computation {
 public:
  Scripted(Script script, std::function<MemoryUse()> memory)
      : layout_(two_chunks()), script_(std::move(script)), memory_(std::move(memory)) {}
  const Layout& layout() const override { return layout_; }
  Capabilities capabilities() const override { return {"cpu", "script", 8}; }
  MemoryUse memory(std::uint64_t) override { return memory_ ? memory_() : MemoryUse{}; }
  Result<Outcome> run(const Task& task, Weights& weights, Sink& sink, const Stop& stop) override {
    return script_(task, weights, sink, stop);
  }

 private:
  Layout layout_;
  Script script_;
  std::function<MemoryUse()> memory_;
};

// A compute thread around a script, and all that it reports. What the compute thread writes is read after wait().
struct Bench {
  std::vector<std::uint64_t> progress, begun;
  std::vector<std::pair<ChunkId, float>> chunks;
  std::optional<Outcome> outcome;
  std::optional<Error> error, refused;
  std::function<void()> on_begin = [] {};
  std::promise<void> over;
  std::unique_ptr<ComputeThread> thread;

  explicit Bench(Script script, bool fixed_micro_batch = false, std::function<MemoryUse()> memory = {},
                 std::uint64_t reserve_bytes = 0, bool chosen = false) {
    ComputeEvents events;
    events.progress = [this](std::uint64_t, std::uint64_t done) { progress.push_back(done); };
    events.begin = [this](std::uint64_t, std::uint64_t count, double, double) {
      begun.push_back(count);
      on_begin();
    };
    events.chunk = [this](std::uint64_t, ChunkId chunk, const SharedBytes& gradient) {
      chunks.emplace_back(chunk, gradient.floats().front());
    };
    events.finished = [this](std::uint64_t, Outcome result, double) {
      outcome = result;
      over.set_value();
    };
    events.failed = [this](std::uint64_t, Error what) {
      error = std::move(what);
      over.set_value();
    };
    thread = std::make_unique<ComputeThread>(std::move(events));
    std::promise<void> ready;
    thread->prepare(
        [&]() -> Result<Prepared> {
          return Prepared{std::make_unique<Scripted>(std::move(script), std::move(memory)),
                          100,
                          5,
                          8,
                          fixed_micro_batch,
                          chosen,
                          reserve_bytes};
        },
        [&](const Result<const Layout*>& layout) {
          if (!layout) refused = layout.error();
          ready.set_value();
        });
    ready.get_future().get();
  }
  void start(std::uint64_t first = 0, std::uint64_t count = 16) {
    engine::TaskOrder order;
    order.number = 1;
    order.first = first;
    order.count = count;
    order.weights.resize(2);
    thread->start(std::move(order));
  }
  void wait() {
    over.get_future().get();
    over = {};
  }
};

// Weights take 100 bytes, a sample 10, and however many they are `once`.
struct Memory {
  std::uint64_t budget;
  std::uint64_t scratch = 0, once = 0;
  std::uint32_t largest = 0;  // micro-batch since it was asked
  std::vector<std::uint32_t> tried{};

  Script script() {
    return [this](const Task& task, Weights&, Sink&, const Stop&) -> Result<Outcome> {
      largest = static_cast<std::uint32_t>(std::min<std::uint64_t>(task.micro_batch, task.indices.size()));
      tried.push_back(largest);
      if (100 + once + 10 * largest > budget) return Error{ErrorCode::memory, "out of memory", ""};
      return Outcome{task.indices.size(), 1, 1, 0};
    };
  }
  std::function<MemoryUse()> use() {
    return [this] {
      const std::uint64_t samples = std::exchange(largest, 0U);
      return MemoryUse{100, samples > 0 ? 100 + once + 10 * samples : 100, budget, scratch};
    };
  }
};

void send(Sink& sink, ChunkId chunk, float value) {
  const std::vector<float> gradient(chunk == 0 ? 4096 : 64, value);
  sink.ready(chunk, gradient);
}

TEST(ComputeThread, TurnsPositionsIntoSamplesOfTheEpoch) {
  std::vector<std::uint64_t> seen;
  Bench bench([&](const Task& task, Weights&, Sink&, const Stop&) {
    seen.assign(task.indices.begin(), task.indices.end());
    return Outcome{task.indices.size(), 1, 1, 0};
  });
  bench.start(10, 16);
  bench.wait();
  std::vector<std::uint64_t> expected(16);
  data::SampleOrder(5, 0, 100).fill(10, expected);
  EXPECT_EQ(seen, expected);
}

TEST(ComputeThread, OutOfMemoryHalvesTheMicroBatchAndSendsEachChunkOnce) {
  std::vector<std::uint32_t> tried;
  Bench bench([&](const Task& task, Weights&, Sink& sink, const Stop&) -> Result<Outcome> {
    tried.push_back(task.micro_batch);
    if (task.micro_batch == 8) return Error{ErrorCode::memory, "out of memory in the forward pass", ""};
    sink.begin(16, 16, 2);
    send(sink, 1, static_cast<float>(task.micro_batch));
    if (task.micro_batch == 4) return Error{ErrorCode::memory, "out of memory in the backward pass", ""};
    send(sink, 0, static_cast<float>(task.micro_batch));
    return Outcome{16, 16, 2, 0};
  });
  bench.start();
  bench.wait();
  EXPECT_EQ(tried, (std::vector<std::uint32_t>{8, 4, 2}));
  EXPECT_EQ(bench.begun, (std::vector<std::uint64_t>{16}));
  EXPECT_EQ(bench.chunks, (std::vector<std::pair<ChunkId, float>>{{1, 4.0F}, {0, 2.0F}}));
  EXPECT_TRUE(bench.outcome.has_value());
  EXPECT_EQ(bench.thread->micro_batch(), 2U);
}

TEST(ComputeThread, ARetryIsOfTheSamplesThatWereBegun) {
  std::vector<std::uint64_t> limits;
  Bench bench([&](const Task& task, Weights&, Sink& sink, const Stop& stop) -> Result<Outcome> {
    const std::uint64_t count = stop.limit();
    limits.push_back(count);
    sink.begin(count, 1, 1);
    send(sink, task.micro_batch == 8 ? 0 : 1, 1);
    if (task.micro_batch == 8) return Error{ErrorCode::memory, "out of memory", ""};
    return Outcome{count, 1, 1, 0};
  });
  bench.on_begin = [&] { bench.thread->limit(1, 4); };  // a trim that comes too late
  bench.start();
  bench.wait();
  EXPECT_EQ(limits, (std::vector<std::uint64_t>{16, 16}));
  EXPECT_EQ(bench.chunks.size(), 2U);
}

TEST(ComputeThread, GivesUpWhereTheMicroBatchCannotShrink) {
  const Script full = [](const Task&, Weights&, Sink&, const Stop&) -> Result<Outcome> {
    return Error{ErrorCode::memory, "out of memory", ""};
  };
  Bench small(full);
  small.start();
  small.wait();
  EXPECT_EQ(small.error->code, ErrorCode::memory);
  EXPECT_EQ(small.thread->micro_batch(), 1U);
  Bench fixed(full, true);
  fixed.start();
  fixed.wait();
  EXPECT_EQ(fixed.error->code, ErrorCode::memory);
  EXPECT_EQ(fixed.thread->micro_batch(), 8U);
}

TEST(ComputeThread, WithPlentyOfMemoryTheFirstLeaseHasTheDevicesMicroBatch) {
  Memory memory{1000};
  Bench bench(memory.script(), false, memory.use());
  bench.start();
  bench.wait();
  EXPECT_EQ(memory.tried, (std::vector<std::uint32_t>{1, 8}));
}

TEST(ComputeThread, WhereMemoryIsShortTheMicroBatchDoublesFromLeaseToLease) {
  Memory memory{162};  // room for six samples
  Bench bench(memory.script(), false, memory.use());
  for (int i = 0; i < 5; ++i) {
    bench.start();
    bench.wait();
    ASSERT_TRUE(bench.outcome.has_value());
  }
  EXPECT_EQ(memory.tried, (std::vector<std::uint32_t>{1, 2, 2, 4, 4, 4, 4}));
}

TEST(ComputeThread, WhatOthersWillWantIsLeftToThem) {
  Memory memory{162};
  Bench bench(memory.script(), false, memory.use(), 30);
  for (int i = 0; i < 3; ++i) {
    bench.start();
    bench.wait();
  }
  EXPECT_EQ(memory.tried, (std::vector<std::uint32_t>{1, 2, 2, 2, 2}));
}

TEST(ComputeThread, ScratchSpaceCountsForMoreSamplesAndNotForOne) {
  Memory memory{162, 60};
  Bench bench(memory.script(), false, memory.use());
  EXPECT_FALSE(bench.refused.has_value());
  bench.start();
  bench.wait();
  EXPECT_EQ(memory.tried, (std::vector<std::uint32_t>{1, 2, 1}));
}

TEST(ComputeThread, AChosenMicroBatchStaysWhereItFits) {
  // One sample alone looks as if each took what they take together; two sizes do not.
  Memory memory{300};
  memory.once = 100;
  Bench bench(memory.script(), false, memory.use(), 0, true);
  bench.start();
  bench.wait();
  EXPECT_EQ(memory.tried, (std::vector<std::uint32_t>{1, 2, 8}));
}

TEST(ComputeThread, AChosenMicroBatchThatDoesNotFitIsNotTried) {
  Memory memory{162};
  Bench bench(memory.script(), false, memory.use(), 0, true);
  for (int i = 0; i < 2; ++i) {
    bench.start();
    bench.wait();
  }
  EXPECT_EQ(memory.tried, (std::vector<std::uint32_t>{1, 2, 2, 4}));
}

TEST(ComputeThread, AModelThatDoesNotFitIsRefusedAtOnce) {
  Memory tight{109};
  Bench full(tight.script(), false, tight.use());
  ASSERT_TRUE(full.refused.has_value());
  EXPECT_EQ(full.refused->code, ErrorCode::memory);
  EXPECT_NE(full.refused->message.find("to compute one sample, found 0.0 MiB"), std::string::npos)
      << full.refused->message;
  Memory reserved{115};
  Bench others(reserved.script(), false, reserved.use(), 10);
  EXPECT_TRUE(others.refused.has_value());
  Memory grouped{150};
  Bench group(grouped.script(), true, grouped.use());
  ASSERT_TRUE(group.refused.has_value());
  EXPECT_NE(group.refused->message.find("to compute 8 samples at once"), std::string::npos) << group.refused->message;
}

TEST(ComputeThread, OtherErrorsAreNotTriedAgain) {
  int runs = 0;
  Bench bench([&](const Task&, Weights&, Sink&, const Stop&) -> Result<Outcome> {
    ++runs;
    return Error{ErrorCode::internal, "broken", "mend it"};
  });
  bench.start();
  bench.wait();
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(bench.error->message, "broken");
}

TEST(ComputeThread, ALimitReachesTheTaskThatRuns) {
  std::promise<void> running;
  Bench bench([&](const Task&, Weights&, Sink&, const Stop& stop) {
    running.set_value();
    while (stop.limit() > 4) std::this_thread::yield();
    return Outcome{stop.limit(), 1, 1, 0};
  });
  bench.start();
  running.get_future().get();
  bench.thread->limit(2, 1);  // of another task
  bench.thread->limit(1, 4);
  bench.thread->limit(1, 9);  // a limit is never raised
  bench.wait();
  EXPECT_EQ(bench.outcome->count, 4U);
}

TEST(ComputeThread, DestroyingItAbandonsTheTask) {
  std::promise<void> running;
  bool abandoned = false;
  {
    Bench bench([&](const Task&, Weights&, Sink& sink, const Stop& stop) {
      sink.begin(16, 1, 1);
      running.set_value();
      while (stop.limit() > 0) std::this_thread::yield();
      abandoned = true;
      return Outcome{};
    });
    bench.start();
    running.get_future().get();
    bench.thread.reset();
  }
  EXPECT_TRUE(abandoned);
}

TEST(ComputeThread, AFailedPreparationIsReported) {
  ComputeThread thread({});
  std::promise<Error> failed;
  thread.prepare([]() -> Result<Prepared> { return Error{ErrorCode::input, "no such model", ""}; },
                 [&](const Result<const Layout*>& layout) { failed.set_value(layout.error()); });
  EXPECT_EQ(failed.get_future().get().message, "no such model");
}

}  // namespace
}  // namespace motley::runtime

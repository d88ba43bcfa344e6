#include "runtime/compute_thread.h"

#include <gtest/gtest.h>

#include <future>

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

ps::Server zero_server() {
  const Layout layout = two_chunks();
  ps::Snapshot start;
  for (const Chunk& chunk : layout.chunks()) {
    const std::vector<float> zeros(chunk.elements);
    start.weights.push_back(SharedBytes::copy_of(std::as_bytes(std::span(zeros))));
  }
  return *ps::Server::make(layout, {ps::OptimizerKind::sgd, {ps::GroupSpec{}}}, {}, 0, start);
}

class Scripted final : public Computation {
 public:
  explicit Scripted(Script script) : layout_(two_chunks()), script_(std::move(script)) {}
  const Layout& layout() const override { return layout_; }
  Capabilities capabilities() const override { return {"cpu", "script", 8}; }
  Result<Outcome> run(const Task& task, Weights& weights, Sink& sink, const Stop& stop) override {
    return script_(task, weights, sink, stop);
  }

 private:
  Layout layout_;
  Script script_;
};

// A compute thread around a script, and all that it reports. What the compute thread writes is read after wait().
struct Bench {
  std::vector<std::uint64_t> progress, begun;
  std::vector<std::pair<ChunkId, float>> chunks;
  std::optional<Outcome> outcome;
  std::optional<Error> error;
  std::function<void()> on_begin = [] {};
  std::promise<void> over;
  std::unique_ptr<ComputeThread> thread;

  explicit Bench(Script script, bool fixed_micro_batch = false) {
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
    events.rested = [] {};
    thread = std::make_unique<ComputeThread>(std::move(events));
    std::promise<void> ready;
    thread->prepare(
        [&]() -> Result<Prepared> {
          return Prepared{std::make_unique<Scripted>(std::move(script)), 100, 5, 8, fixed_micro_batch};
        },
        [&](const Result<const Layout*>& layout) {
          EXPECT_TRUE(layout);
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
  void wait() { over.get_future().get(); }
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

TEST(ComputeThread, StepsWaitToBeTakenAndEndWhereTheyAreCut) {
  Bench bench([](const Task& task, Weights&, Sink& sink, const Stop&) {
    sink.begin(task.indices.size(), 1, 1);
    for (const ChunkId chunk : {1U, 0U}) send(sink, chunk, 1);
    return Outcome{task.indices.size(), 1, 1, 0};
  });
  engine::StretchOrder order;
  order.number = 7;
  order.steps = 1000;
  order.train_samples = 100;
  order.global_batch = 16;
  order.server = std::make_shared<ps::Server>(zero_server());
  std::vector<std::uint64_t> steps;
  std::promise<void> fourth, sixth, over;
  StretchEvents events;
  events.step = [&](const engine::StretchStep& step) {
    steps.push_back(step.step);
    if (steps.size() == 4) fourth.set_value();
    if (steps.size() == 6) sixth.set_value();
  };
  events.ended = [&](std::uint64_t number, const std::optional<Error>& failure) {
    EXPECT_EQ(number, 7U);
    EXPECT_FALSE(failure.has_value());
    over.set_value();
  };
  bench.thread->lend(order, events);
  fourth.get_future().get();
  bench.thread->taken();
  bench.thread->taken();
  sixth.get_future().get();  // and no seventh: nothing was taken since
  bench.thread->cut(7);
  over.get_future().get();
  EXPECT_EQ(steps, (std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5}));
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

#include "runtime/compute_thread.h"

#include "compute_bench.h"

namespace motley::runtime {
namespace {

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
  Bench fixed(full, 8);
  fixed.start();
  fixed.wait();
  EXPECT_EQ(fixed.error->code, ErrorCode::memory);
  EXPECT_EQ(fixed.thread->micro_batch(), 8U);
}

TEST(ComputeThread, OutOfMemoryHalvesTheNumberOfWholeGroups) {
  std::vector<std::uint32_t> tried;
  Bench bench(
      [&](const Task& task, Weights&, Sink&, const Stop&) -> Result<Outcome> {
        tried.push_back(task.micro_batch);
        return Error{ErrorCode::memory, "out of memory", ""};
      },
      2);
  bench.start();
  bench.wait();
  EXPECT_EQ(tried, (std::vector<std::uint32_t>{8, 4, 2}));
  EXPECT_TRUE(bench.error.has_value());
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
  EXPECT_EQ(bench.thread->limit(2, 1), 0U) << "of another task";
  EXPECT_EQ(bench.thread->limit(1, 9), 9U);
  EXPECT_EQ(bench.thread->limit(1, 12), 12U) << "it may rise again";
  EXPECT_EQ(bench.thread->limit(1, 4), 4U);
  bench.wait();
  EXPECT_EQ(bench.outcome->count, 4U);
}

// Micro-batches of 4 samples without arithmetic, each of which takes a moment, as far as Stop lets it.
Result<Outcome> take_micro_batches(const Task& task, Sink& sink, const Stop& stop) {
  Outcome outcome;
  for (std::uint64_t limit = 0; outcome.count < (limit = std::min(stop.limit(), task.indices.size()));) {
    if (!stop.claim(outcome.count + 4)) continue;
    for (const Time end = now() + std::chrono::milliseconds(2); now() < end;) std::this_thread::yield();
    outcome.count += 4;
    sink.progress(outcome.count);
  }
  return outcome;
}

TEST(ComputeThread, FinishingEarlyEndsWithTheMicroBatchInHand) {
  std::promise<void> running, asked;
  Bench bench([&](const Task&, Weights&, Sink& sink, const Stop& stop) {
    EXPECT_EQ(stop.limit(), 16U);
    EXPECT_TRUE(stop.claim(4));
    running.set_value();
    asked.get_future().get();
    sink.progress(4);
    return Outcome{stop.limit(), 1, 1, 0};
  });
  bench.start();
  running.get_future().get();
  bench.thread->finish_early(2);  // another task
  bench.thread->finish_early(1);
  asked.set_value();
  bench.wait();
  EXPECT_EQ(bench.outcome->count, 4U);
}

TEST(ComputeThread, FinishingEarlyGivesBackWhatWasNotBegun) {
  std::promise<void> asked;
  Bench bench([&](const Task&, Weights&, Sink&, const Stop& stop) {
    asked.get_future().get();
    return Outcome{stop.limit(), 0, 0, 0};
  });
  bench.start();
  bench.thread->finish_early(1);
  asked.set_value();
  bench.wait();
  EXPECT_EQ(bench.outcome->count, 0U);
}

TEST(ComputeThread, AShareOfTheTimeIsChargedWithItsRest) {
  Time work{}, newest{};
  Bench bench(
      [&](const Task& task, Weights&, Sink& sink, const Stop& stop) {
        for (std::uint64_t done = 0; done < stop.limit(); done += 4) {
          EXPECT_TRUE(stop.claim(done + 4));
          const Time begun = now();
          while (now() - begun < std::chrono::milliseconds(2)) std::this_thread::yield();
          newest = now() - begun;
          work += newest;
          sink.progress(done + 4);
        }
        return Outcome{task.indices.size(), 1, 1, 0};
      },
      1, {.share = 0.25});
  const Time started = now();
  bench.start();
  bench.wait();
  EXPECT_GE(now() - started, work + 3 * (work - newest))
      << "the rest for the last micro-batch comes before the next task";
  EXPECT_GE(bench.compute_seconds, 4 * seconds(work) * 0.999);
}

// At this share a rest lasts for minutes.
constexpr Manners kMinutesOfRest{.share = 1e-5};

TEST(ComputeThread, ARestEndsWhenTheTaskIsToEndWithWhatIsDone) {
  const Script script = [](const Task& task, Weights&, Sink& sink, const Stop& stop) {
    return take_micro_batches(task, sink, stop);
  };
  Bench early(script, 1, kMinutesOfRest);
  early.on_progress = [&] { early.thread->finish_early(1); };
  early.start();
  early.wait();
  EXPECT_EQ(early.outcome->count, 4U);
  Bench trimmed(script, 1, kMinutesOfRest);
  trimmed.on_progress = [&] { trimmed.thread->limit(1, 4); };
  trimmed.start();
  trimmed.wait();
  EXPECT_EQ(trimmed.outcome->count, 4U);
  Bench destroyed(script, 1, kMinutesOfRest);
  std::promise<void> resting;
  destroyed.on_progress = [&] { resting.set_value(); };
  destroyed.start();
  resting.get_future().get();
  destroyed.thread.reset();
}

TEST(ComputeThread, TheRestForTheLastMicroBatchComesAfterTheResult) {
  Bench bench(
      [](const Task& task, Weights&, Sink& sink, const Stop& stop) { return take_micro_batches(task, sink, stop); }, 1,
      kMinutesOfRest);
  bench.start(0, 4);
  bench.wait();
  EXPECT_EQ(bench.outcome->count, 4U);
  bench.start(0, 4);
  bench.thread->finish_early(1);
  bench.wait();
  EXPECT_EQ(bench.outcome->count, 0U) << "the next task was resting";
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

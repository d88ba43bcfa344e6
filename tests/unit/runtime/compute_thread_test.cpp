#include "runtime/compute_thread.h"

#include "compute_bench.h"

namespace motley::runtime {
namespace {

TEST(ComputeThread, TurnsPositionsIntoSamplesOfTheEpoch) {
  std::vector<std::uint64_t> seen;
  Bench bench({.open = [&](const Task& task) -> Status {
    seen.assign(task.indices.begin(), task.indices.end());
    return {};
  }});
  bench.start(10, 16);
  bench.wait();
  std::vector<std::uint64_t> expected(16);
  data::SampleOrder(5, 0, 100).fill(10, expected);
  EXPECT_EQ(seen, expected);
}

const Error kFull{ErrorCode::memory, "out of memory", ""};

TEST(ComputeThread, OutOfMemoryHalvesTheMicroBatchAndSendsEachChunkOnce) {
  std::vector<std::uint32_t> tried;
  Bench bench({.forward = [&](const Task& task) -> Status {
                 if (tried.empty() || tried.back() != task.micro_batch) tried.push_back(task.micro_batch);
                 return task.micro_batch == 8 ? Status(kFull) : Status();
               },
               .last_backward = [](const Task& task, Finals& finals) -> Status {
                 finals.placement_final(1);
                 return task.micro_batch == 4 ? Status(kFull) : Status();
               }});
  bench.run();
  EXPECT_EQ(tried, (std::vector<std::uint32_t>{8, 4, 2}));
  EXPECT_EQ(bench.begun, (std::vector<std::uint64_t>{16}));
  EXPECT_EQ(bench.chunks, (std::vector<std::pair<ChunkId, float>>{{1, 4.0F}, {0, 2.0F}}));
  EXPECT_TRUE(bench.outcome.has_value());
  EXPECT_EQ(bench.thread->micro_batch(), 2U);
}

TEST(ComputeThread, ARetryIsOfTheSamplesThatWereBegun) {
  std::vector<std::uint32_t> tried;
  Bench bench({.last_backward = [&](const Task& task, Finals&) -> Status {
    tried.push_back(task.micro_batch);
    return task.micro_batch == 8 ? Status(kFull) : Status();
  }});
  bench.on_begin = [&] { bench.thread->limit(1, 4); };  // a trim that comes too late
  bench.run();
  EXPECT_EQ(tried, (std::vector<std::uint32_t>{8, 4}));
  EXPECT_EQ(bench.outcome->count, 16U);
  EXPECT_EQ(bench.chunks.size(), 2U);
}

TEST(ComputeThread, GivesUpWhereTheMicroBatchCannotShrink) {
  const Script full = {.open = [](const Task&) -> Status { return kFull; }};
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
  Bench bench({.open = [&](const Task& task) -> Status {
                tried.push_back(task.micro_batch);
                return kFull;
              }},
              2);
  bench.run();
  EXPECT_EQ(tried, (std::vector<std::uint32_t>{8, 4, 2}));
  EXPECT_TRUE(bench.error.has_value());
}

TEST(ComputeThread, OtherErrorsAreNotTriedAgain) {
  int runs = 0;
  Bench bench({.open = [&](const Task&) -> Status {
    ++runs;
    return Error{ErrorCode::internal, "broken", "mend it"};
  }});
  bench.run();
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(bench.error->message, "broken");
}

/// A forward pass that says when it runs and waits to go on, the first time.
struct Gate {
  std::promise<void> running, go_on;
  bool passed = false;
  Script script() {
    return {.forward = [this](const Task&) -> Status {
      if (std::exchange(passed, true)) return {};
      running.set_value();
      go_on.get_future().get();
      return {};
    }};
  }
};

TEST(ComputeThread, ALimitReachesTheTaskThatRuns) {
  Gate gate;
  Bench bench(gate.script());
  bench.start();
  gate.running.get_future().get();
  EXPECT_EQ(bench.thread->limit(2, 1), 0U) << "of another task";
  EXPECT_EQ(bench.thread->limit(1, 9), 9U);
  EXPECT_EQ(bench.thread->limit(1, 12), 12U) << "it may rise again";
  EXPECT_EQ(bench.thread->limit(1, 4), 8U) << "which are being computed";
  gate.go_on.set_value();
  bench.wait();
  EXPECT_EQ(bench.outcome->count, 8U);
}

TEST(ComputeThread, FinishingEarlyEndsWithTheMicroBatchInHand) {
  Gate gate;
  Bench bench(gate.script());
  bench.start();
  gate.running.get_future().get();
  bench.thread->finish_early(2);  // another task
  bench.thread->finish_early(1);
  gate.go_on.set_value();
  bench.wait();
  EXPECT_EQ(bench.outcome->count, 8U);
}

TEST(ComputeThread, FinishingEarlyGivesBackWhatWasNotBegun) {
  std::promise<void> asked;
  Bench bench({.open = [&](const Task&) -> Status {
    asked.get_future().get();
    return {};
  }});
  bench.start();
  bench.thread->finish_early(1);
  asked.set_value();
  bench.wait();
  EXPECT_EQ(bench.outcome->count, 0U);
}

Status take(std::chrono::milliseconds time) {
  for (const Time end = now() + time; now() < end;) std::this_thread::yield();
  return {};
}
Status take_a_moment(const Task&) { return take(std::chrono::milliseconds(2)); }

TEST(ComputeThread, AShareOfTheTimeIsChargedWithItsRest) {
  Time work{}, newest{};
  Bench bench({.forward = [&](const Task& task) -> Status {
                const Time begun = now();
                Status done = take_a_moment(task);
                newest = now() - begun;
                work += newest;
                return done;
              }},
              1, {.duty = 0.25});
  const Time started = now();
  bench.run();
  EXPECT_GE(now() - started, work + 3 * (work - newest))
      << "the rest for the last micro-batch comes before the next task";
  EXPECT_GE(bench.compute_seconds, 4 * seconds(work) * 0.999);
}

// At this share a rest after take_a_while() lasts for minutes, and one after the few milliseconds that a busy machine
// keeps a task waiting does not.
constexpr ResourcePolicy kMinutesOfRest{.duty = 1e-4};
Status take_a_while(const Task&) { return take(std::chrono::milliseconds(40)); }

TEST(ComputeThread, ARestEndsWhenTheTaskIsToEndWithWhatIsDone) {
  const Script script = {.forward = take_a_while};
  Bench early(script, 1, kMinutesOfRest);
  early.on_progress = [&] { early.thread->finish_early(1); };
  early.start();
  early.wait();
  EXPECT_EQ(early.outcome->count, 8U);
  Bench trimmed(script, 1, kMinutesOfRest);
  trimmed.on_progress = [&] { trimmed.thread->limit(1, 4); };
  trimmed.start();
  trimmed.wait();
  EXPECT_EQ(trimmed.outcome->count, 8U);
  Bench destroyed(script, 1, kMinutesOfRest);
  std::promise<void> resting;
  destroyed.on_progress = [&] { resting.set_value(); };
  destroyed.start();
  resting.get_future().get();
  destroyed.thread.reset();
}

TEST(ComputeThread, TheRestForTheLastMicroBatchComesAfterTheResult) {
  Bench bench({.forward = take_a_while}, 1, kMinutesOfRest);
  bench.start(0, 8);
  bench.wait();
  EXPECT_EQ(bench.outcome->count, 8U);
  bench.start(0, 8);
  bench.thread->finish_early(1);
  bench.wait();
  EXPECT_EQ(bench.outcome->count, 0U) << "the next task was resting";
}

TEST(ComputeThread, DestroyingItAbandonsATaskThatWaitsForWeights) {
  std::promise<void> running;
  Bench bench({.open = [&](const Task&) -> Status {
    running.set_value();
    return {};
  }});
  bench.start(0, 16, std::vector<SharedBytes>(2));
  running.get_future().get();
  bench.thread.reset();
  EXPECT_EQ(bench.outcome->count, 0U);
  EXPECT_TRUE(bench.begun.empty());
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

#include "compute/task_loop.h"

#include <iterator>
#include <sstream>

#include "base/philox.h"
#include "fake_model.h"

namespace motley::compute {
namespace {

using Chunk = ComingWeights::Chunk;

struct Row {
  std::string what;
  Flow flow;
  std::uint32_t group;
  PassKind kind;
  std::string how;  // "end": from there
  std::uint64_t size;
  std::string limits;  // one a question
  std::uint64_t refused;
  std::string calls;  // after the weights came
  std::uint64_t count;
  std::uint32_t most = 8;  // samples of a micro-batch
};

std::vector<std::uint64_t> numbers(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::uint64_t>(in), {}};
}

// f: forward; b, last: backward; p: progress; c: a chunk of the gradient.
const std::vector<Row> kRows = {
    {"in step, the gradient comes last", Flow::in_step, 0, PassKind::train, "", 20, "20", 0,
     "f0+8 b p8 f8+8 b p16 f16+4 b p20 begin20 end20 c2 c1 c0", 20},
    {"chunks leave during the last backward pass, the odd part goes first", Flow::overlapped, 0, PassKind::train, "",
     20, "20", 0, "f0+4 b p4 f4+8 b p12 f12+8 begin20 last c1 end20 c2 c0 p20", 20},
    {"a device that is behind has its backward pass first", Flow::behind, 0, PassKind::train, "", 20, "20", 0,
     "f0+4 b p4 f4+8 b p12 f12+8 b begin20 end20 c2 c1 c0 p20", 20},
    {"from the end", Flow::overlapped, 0, PassKind::train, "end", 20, "16", 0,
     "f12+8 b p8 f4+8 begin16 last c1 end16 c2 c0 p16", 16},
    {"trimmed to what is done", Flow::overlapped, 0, PassKind::train, "", 32, "32 32 32 8", 0,
     "f0+8 b p8 begin8 end8 c2 c1 c0", 8},
    {"raised during the last forward pass", Flow::overlapped, 0, PassKind::train, "", 32, "8 8 16", 0,
     "f0+8 b p8 f8+8 begin16 last c1 end16 c2 c0 p16", 16},
    {"raised after the last forward pass", Flow::in_step, 0, PassKind::train, "", 32, "8 8 16", 0,
     "f0+8 b p8 f8+8 b p16 begin16 end16 c2 c1 c0", 16},
    {"a limit above the task", Flow::in_step, 0, PassKind::train, "", 8, "500", 0, "f0+8 b p8 begin8 end8 c2 c1 c0", 8},
    {"given away before it was claimed", Flow::in_step, 0, PassKind::train, "", 20, "20 20 20 10", 16,
     "f0+8 b p8 f8+2 b p10 begin10 end10 c2 c1 c0", 10},
    {"abandoned at once", Flow::overlapped, 0, PassKind::train, "", 20, "0", 0, "", 0},
    {"abandoned on the way", Flow::overlapped, 0, PassKind::train, "", 20, "20 20 0", 0, "f0+4 b p4", 0},
    {"groups are not cut", Flow::overlapped, 4, PassKind::train, "", 10, "7", 0, "f0+4 begin4 last c1 end4 c2 c0 p4", 4,
     4},
    {"the last group may be short", Flow::overlapped, 4, PassKind::train, "", 10, "10", 0,
     "f0+4 b p4 f4+4 b p8 f8+2 begin10 last c1 end10 c2 c0 p10", 10, 4},
    {"and is the first from the end", Flow::overlapped, 4, PassKind::train, "end", 10, "9", 0,
     "f8+2 b p2 f4+4 begin6 last c1 end6 c2 c0 p6", 6, 4},
    {"several groups go at once, the odd ones first", Flow::overlapped, 4, PassKind::train, "", 18, "18", 0,
     "f0+4 b p4 f4+8 b p12 f12+6 begin18 last c1 end18 c2 c0 p18", 18},
    {"as the short one does from the end", Flow::overlapped, 4, PassKind::train, "end", 22, "19", 0,
     "f20+2 b p2 f12+8 b p10 f4+8 begin18 last c1 end18 c2 c0 p18", 18},
    {"a group is computed that is larger than may go at once", Flow::overlapped, 4, PassKind::train, "", 8, "8", 0,
     "f0+4 b p4 f4+4 begin8 last c1 end8 c2 c0 p8", 8, 2},
    {"of less than the short group nothing", Flow::overlapped, 4, PassKind::train, "end", 11, "2", 0, "", 0},
    {"a gradient that stays on the device", Flow::behind, 0, PassKind::train, "resident", 16, "16", 0,
     "f0+8 b p8 f8+8 b begin16 end16 p16", 16},
    {"calibration sends nothing", Flow::overlapped, 0, PassKind::calibrate, "", 12, "12", 0,
     "f0+4 b p4 f4+8 b end12 p12", 12},
    {"evaluation has no gradient and no odd part first", Flow::overlapped, 0, PassKind::evaluate, "", 12, "12", 0,
     "f0+8 p8 f8+4 p12", 12},
};

TEST(TaskLoop, RunsMicroBatchesAsFarAsItMay) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.what);
    Rig run(row.flow, row.group);
    run.model.most = row.most;
    run.task.kind = row.kind;
    run.task.from_end = row.how == "end";
    run.task.resident = row.how == "resident";
    const Result<Outcome> outcome = run.run(row.size, Limits(numbers(row.limits), row.refused));
    ASSERT_TRUE(outcome);
    const std::string weights = run.task.resident ? "open start" : "open load0+3 start";
    EXPECT_EQ(joined(run.model.log), weights + (row.calls.empty() ? "" : " ") + row.calls);
    EXPECT_EQ(outcome->count, row.count);
    EXPECT_EQ(run.model.closed, 1);
    if (row.count == 0) continue;
    EXPECT_EQ(outcome->weight, static_cast<double>(row.count));
    EXPECT_EQ(outcome->micro_batch, std::max(row.group, row.most));
    EXPECT_EQ(outcome->correct, 3U);
    EXPECT_EQ(outcome->scores, (std::vector<double>{1, 2}));
  }
}

TEST(TaskLoop, MicroBatchesAreWholeGroups) {
  Philox dice(5);
  for (int i = 0; i < 2000; ++i) {
    const std::uint32_t group = dice.below(2) == 0 ? 1 : 32;
    Rig run(Flow::overlapped, group);
    run.model.most = group * static_cast<std::uint32_t>(1 + dice.below(8));
    run.task.from_end = dice.below(2) == 0;
    std::vector<std::uint64_t> indices(1 + dice.below(600));
    std::iota(indices.begin(), indices.end(), 0);
    run.task.indices = indices;
    const std::uint64_t asked = dice.below(2) == 0 ? indices.size() : 1 + dice.below(indices.size());
    LoggedSink sink(run.model);
    const Limits limits({asked});
    run.loop.open(run.task, run.weights, sink, limits);
    std::uint64_t done = 0, count = 0, groups = 0, micro_batches = 0;
    while ((count = run.loop.claim()) > 0) {
      const std::uint64_t first = run.task.at(done, count);
      EXPECT_LE(count, run.model.most);
      EXPECT_EQ(first % group, 0U);
      EXPECT_TRUE((first + count) % group == 0 || first + count == indices.size() || first + count == asked);
      groups += (count + group - 1) / group;
      ++micro_batches;
      done += count;
      run.loop.compute();
    }
    EXPECT_LE(done, asked);
    EXPECT_TRUE(done == asked || asked - done < group);
    const std::uint64_t whole = run.model.most / group;
    EXPECT_EQ(micro_batches, (groups + whole - 1) / whole);
    ASSERT_TRUE(run.loop.close());
  }
}

TEST(TaskLoop, WhatIsRefusedIsCutAnew) {
  for (const bool from_end : {false, true}) {
    Rig run(Flow::overlapped, 4);
    run.model.together = 4;
    run.task.from_end = from_end;
    EXPECT_EQ(run.run(14, Limits({14}))->count, 14U);
    const std::string calls =
        from_end ? "f12+2 b p2 f8+4 b p6 f4+4 b p10 f0+4" : "f0+4 b p4 f4+4 b p8 f8+4 b p12 f12+2";
    EXPECT_EQ(joined(run.model.log), "open load0+3 start refused " + calls + " begin14 last c1 end14 c2 c0 p14");
  }
}

TEST(TaskLoop, ClosesWhatFails) {
  for (const std::string fails : {"open", "load", "start", "f0", "b", "last", "end"}) {
    Rig run(Flow::overlapped);
    run.model.fails = fails;
    run.model.code = ErrorCode::memory;
    const Result<Outcome> outcome = run.run(20, Limits({20}));
    ASSERT_FALSE(outcome) << fails;
    EXPECT_EQ(outcome.error().code, ErrorCode::memory);
    EXPECT_EQ(outcome.error().message, "it failed");
    EXPECT_TRUE(run.model.log.back().starts_with(fails) || run.model.log.back() == "c1") << run.model.log.back();
    EXPECT_EQ(run.model.closed, 1);
    run.model.log.clear();
    EXPECT_EQ(run.run(8, Limits({8}))->count, 8U) << "and goes on with the next";
  }
}

TEST(TaskLoop, TheFirstSamplesAreReadBeforeWeightsAreWaitedFor) {
  Rig run(Flow::overlapped);
  run.model.reads = true;
  ASSERT_TRUE(run.run(20, Limits({20, 12})));
  EXPECT_EQ(joined(run.model.log), "open read0+4 load0+3 start f0+4 b p4 f4+8 begin12 last c1 end12 c2 c0 p12");
  run.model.log.clear();
  run.task.kind = PassKind::evaluate;
  ASSERT_TRUE(run.run(8, Limits({8})));
  EXPECT_EQ(joined(run.model.log), "open load0+3 start f0+8 p8");
}

TEST(TaskLoop, TheForwardPassStartsWhileWeightsArrive) {
  struct Case {
    std::vector<Chunk> chunks;
    std::optional<ChunkId> needs;
    std::string calls;
    std::uint64_t count;
  };
  const std::string rest = " b p8";
  const std::vector<Case> cases = {
      {{Chunk::comes, Chunk::here, Chunk::comes}, 2, "open load1+1 start f0+8 load2+1", 16},
      {{Chunk::comes, Chunk::comes, Chunk::comes}, 1, "open load0+1 start f0+8 load1+1", 16},
      {{Chunk::comes, Chunk::here, Chunk::comes}, 1, "open load1+1 start f0+8", 16},
      {{Chunk::here, Chunk::never, Chunk::here}, 1, "open load0+1 load2+1 start f0+8", 0},
      {{Chunk::never, Chunk::never, Chunk::never}, 1, "open", 0},
  };
  for (const Case& row : cases) {
    Rig run(Flow::in_step);
    run.model.early = true;
    run.model.needs = row.needs;
    run.weights = ComingWeights(row.chunks);
    const Result<Outcome> outcome = run.run(16, Limits({16}));
    ASSERT_TRUE(outcome);
    const std::string log = joined(run.model.log);
    EXPECT_TRUE(log.starts_with(row.calls)) << log;
    EXPECT_EQ(outcome->count, row.count) << log;
    EXPECT_EQ(run.model.closed, 1);
  }
}

TEST(TaskLoop, WhoNeedsAllWeightsGetsThemAsTheyCome) {
  Rig run(Flow::in_step);
  run.weights = ComingWeights({Chunk::here, Chunk::here, Chunk::comes});
  ASSERT_TRUE(run.run(8, Limits({8})));
  EXPECT_TRUE(joined(run.model.log).starts_with("open load0+2 load2+1 start f0+8")) << joined(run.model.log);
  run.model.log.clear();
  run.weights = ComingWeights({Chunk::here, Chunk::never, Chunk::here});
  EXPECT_EQ(run.run(8, Limits({8}))->count, 0U);
  EXPECT_EQ(joined(run.model.log), "open load0+1");
}

TEST(TaskLoop, WeightsThatAModelKeepsAreLoadedOnce) {
  Rig run(Flow::in_step);
  const auto loads = [&] {
    run.model.log.clear();
    EXPECT_TRUE(run.run(8, Limits({8})));
    return run.model.log[1] == "load0+3";
  };
  EXPECT_TRUE(loads());
  EXPECT_TRUE(loads()) << "it does not keep them";
  run.model.keeps = true;
  EXPECT_FALSE(loads());
  ++run.task.version;
  EXPECT_TRUE(loads());
  EXPECT_FALSE(loads());
  run.weights.values.back() = 2;
  EXPECT_TRUE(loads()) << "other weights of the same version, after a restart";
  run.weights = ComingWeights({Chunk::here, Chunk::never, Chunk::here});
  ++run.task.version;
  EXPECT_EQ(run.run(8, Limits({8}))->count, 0U);
  run.weights = ComingWeights();
  EXPECT_TRUE(loads()) << "a part of them came";
}

TEST(TaskLoop, TimeMayPassBetweenItsPieces) {
  Rig run(Flow::in_step);
  const std::vector<std::uint64_t> indices = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  run.task.indices = indices;
  LoggedSink sink(run.model);
  const Limits all({10});
  run.loop.open(run.task, run.weights, sink, all);
  EXPECT_EQ(joined(run.model.log), "open") << "weights may come while the first micro-batch takes its time";
  EXPECT_EQ(run.loop.claim(), 8U);
  run.loop.compute();
  EXPECT_EQ(run.loop.claim(), 2U);
  run.loop.compute();
  EXPECT_EQ(run.loop.claim(), 0U);
  EXPECT_EQ(run.loop.close()->count, 10U);
  run.loop.open(run.task, run.weights, sink, all);
  EXPECT_EQ(run.loop.claim(), 8U);
  run.model.log.clear();
  EXPECT_EQ(run.loop.close()->count, 0U) << "claimed and not computed: abandoned";
  EXPECT_EQ(joined(run.model.log), "");
}

}  // namespace
}  // namespace motley::compute

// From segments to the versions that tasks compute with.

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "session.h"

namespace motley::engine {
namespace {

TEST_F(WorkerTest, WeightsBeforeAdmissionCountIfTheFenceIsRight) {
  prepare();
  for (ChunkId chunk = 0; chunk < chunks(); ++chunk) give_chunk(2, chunk, kFence + 1);  // of an older session
  give_chunk(3, 0);
  control(wire::Admitted{3, kFence});
  EXPECT_TRUE(out.sent<wire::Synced>().empty());
  for (ChunkId chunk = 1; chunk < chunks(); ++chunk) give_chunk(3, chunk);
  ASSERT_EQ(out.sent<wire::Synced>().size(), 1U);
  EXPECT_EQ(out.sent<wire::Synced>()[0].version, 3U);
}

TEST_F(WorkerTest, ATaskGetsWeightsThatAreOnTheirWayChunkByChunk) {
  join(0);
  control(wire::PassOpened{pass_of(0), 0, 0, 0, 8});
  give_chunk(1, 1);
  control(wire::PassClosed{pass_of(0), 1});
  control(grant(1, 11));
  ASSERT_EQ(out.tasks.size(), 1U);
  EXPECT_EQ(out.tasks[0].version, 1U);
  for (ChunkId chunk = 0; chunk < chunks(); ++chunk) EXPECT_EQ(out.tasks[0].weights[chunk].empty(), chunk != 1);
  for (ChunkId chunk = 0; chunk < chunks(); ++chunk) {
    give_chunk(1, chunk);
    give_chunk(1, chunk);  // what comes twice is passed on once
  }
  ASSERT_EQ(out.arrived.size(), chunks() - 1);
  for (const auto& [task, chunk, first] : out.arrived) {
    EXPECT_EQ(task, out.tasks[0].number);
    EXPECT_EQ(first, 1.5F);
  }
  complete(out.tasks[0].number, 8);
  ASSERT_EQ(out.sent<wire::Finish>().size(), 1U);
  EXPECT_EQ(out.sent<wire::Finish>()[0].count, 8U);
}

TEST_F(WorkerTest, WaitingForWeightsIsNoComputing) {
  join(0);
  control(grant(0, 11));
  worker.task_begin(1, 8, {1, 1}, now);
  for (ChunkId chunk = 0; chunk < chunks(); ++chunk)
    worker.task_chunk(1, chunk, filled(layout.chunks()[chunk].elements, 3.0F), now);
  worker.task_finished(1, Outcome{8, 1, 1, 0}, 0.25, 0.5, now);
  ASSERT_EQ(out.sent<wire::Finish>().size(), 1U);
  EXPECT_EQ(out.sent<wire::Finish>()[0].compute_seconds, 0.25);
  EXPECT_EQ(out.sent<wire::Finish>()[0].wait_seconds, 1.5) << "a second without a task, half a second in it";
}

TEST_F(WorkerTest, NothingIsAskedForAgainWhileBytesCome) {
  prepare();
  control(wire::Admitted{3, kFence});
  const auto wait = [&](bool bytes) {
    for (int i = 0; i < 100; ++i) {
      now += std::chrono::milliseconds(100);
      control(wire::Heartbeat{1, 0});
      if (bytes) worker.bytes_came(now);
      worker.tick(now);
    }
  };
  wait(true);
  EXPECT_TRUE(out.sent<wire::Refresh>().empty());
  wait(false);
  EXPECT_FALSE(out.sent<wire::Refresh>().empty());
}

TEST_F(WorkerTest, MovesOnWhenTheWordIsThere) {
  join(0);
  control(wire::PassOpened{pass_of(0), 0, 0, 0, 64});
  control(grant(1, 12));
  give_chunk(1, 0);
  EXPECT_TRUE(out.tasks.empty());
  control(wire::PassClosed{pass_of(0), 1});
  ASSERT_EQ(out.tasks.size(), 1U);
  EXPECT_EQ(out.tasks[0].weights[0].floats()[0], 1.5F);
  give_version(1);
  EXPECT_EQ(out.arrived.size(), chunks() - 1);
  EXPECT_EQ(out.sent<wire::Synced>().size(), 1U) << "only the first, as a joiner";
}

TEST_F(WorkerTest, TheNextVersionIsStagedWhileThePassIsOpen) {
  join(0);
  control(wire::PassOpened{pass_of(0), 0, 0, 0, 64});
  give_version(1);
  control(grant(0, 12));
  ASSERT_EQ(out.tasks.size(), 1U);
  EXPECT_EQ(out.tasks[0].weights[0].floats()[0], 0.5F) << "no worker computes at mixed versions";
  complete(1, 8);
  control(wire::PassClosed{pass_of(0), 1});
  ASSERT_EQ(out.steps.size(), 1U);
  EXPECT_EQ(out.steps[0], (std::pair<std::uint64_t, std::uint64_t>{1, 8}));
  control(grant(1, 13));
  EXPECT_EQ(out.tasks.back().weights[0].floats()[0], 1.5F);
}

TEST_F(WorkerTest, SegmentsInAnyOrderAndTwice) {
  prepare();
  control(wire::Admitted{3, kFence});
  const std::size_t bytes = chunk_bytes(0);
  for (ChunkId chunk = 1; chunk < chunks(); ++chunk) give_chunk(0, chunk);
  const std::size_t third = bytes / 12 * 4;
  worker.frame(segment(0, 0, 2 * third, bytes - 2 * third), now);
  worker.frame(segment(0, 0, 2 * third, bytes - 2 * third), now);
  worker.frame(segment(0, 0, 0, third), now);
  worker.frame(segment(0, 0, 0, third), now);
  EXPECT_TRUE(out.sent<wire::Synced>().empty());
  worker.frame(segment(0, 0, third - 4, third + 8), now);  // overlaps both
  EXPECT_EQ(out.sent<wire::Synced>().size(), 1U);
}

TEST_F(WorkerTest, AVersionThatWasSkippedMakesWayForTheNewest) {
  join(0);
  control(wire::PassOpened{pass_of(0), 0, 0, 0, 64});
  give_chunk(1, 0);
  control(wire::PassClosed{pass_of(0), 1});
  control(wire::PassClosed{pass_of(1), 2});
  give_version(2);
  ASSERT_EQ(out.sent<wire::Synced>().size(), 2U);
  EXPECT_EQ(out.sent<wire::Synced>()[1].version, 2U);
}

}  // namespace
}  // namespace motley::engine

// A worker that follows another one which is lost: what the coordinator cannot send again any more it asks for whole.

#include <gtest/gtest.h>

#include "base/xxh64.h"
#include "worker_session.h"

namespace motley::engine {
namespace {

constexpr std::uint64_t kSource = 7;

WorkerOptions follows_others() {
  WorkerOptions options;
  options.hasher = [](std::span<const std::byte> bytes) {
    wire::BodyHash hash{};
    hash[0] = static_cast<std::uint8_t>(xxh64(bytes));
    return hash;
  };
  return options;
}

class WorkerInAChain : public WorkerTest {
 protected:
  WorkerInAChain() : WorkerTest(follows_others()) {
    join(4);
    worker.follows(kSource, now);
  }
  void by_hash(std::uint64_t version, ChunkId chunk) {
    wire::FrameHeader header = weights_header(version, chunk, kFence);
    header.flags = wire::kByHash;
    header.pass = kSource;
    header.total = static_cast<std::uint32_t>(chunk_bytes(chunk));
    worker.frame(wire::seal(header, SharedBytes::copy_of(std::vector<std::byte>(wire::kHashBytes))), now);
  }
  void coordinator_sent_again_from(std::uint64_t version) {
    control(wire::Unfollows{.id = kSource, .version = version, .has = {}});
  }
};

TEST_F(WorkerInAChain, WhatTheCoordinatorHasNoMoreIsAskedForWhole) {
  by_hash(5, 0);
  worker.source_lost(kSource);
  ASSERT_EQ(out.sent<wire::Unfollows>().size(), 1U);
  EXPECT_EQ(out.sent<wire::Unfollows>()[0].version, 5U);
  coordinator_sent_again_from(6);
  EXPECT_EQ(out.sent<wire::Refresh>().size(), 1U);
  give_version(6);
  EXPECT_EQ(out.sent<wire::Synced>().back().version, 6U);
  EXPECT_EQ(worker.state(), cluster::WorkerState::member);
}

TEST_F(WorkerInAChain, AHashOfThatWhichWasOnItsWayIsNotWaitedForEither) {
  worker.source_lost(kSource);
  coordinator_sent_again_from(6);
  EXPECT_TRUE(out.sent<wire::Refresh>().empty());
  by_hash(5, 0);
  EXPECT_EQ(out.sent<wire::Refresh>().size(), 1U);
}

TEST_F(WorkerInAChain, WhatTheCoordinatorHasIsWaitedFor) {
  by_hash(5, 0);
  worker.source_lost(kSource);
  coordinator_sent_again_from(5);
  give_version(5);
  EXPECT_TRUE(out.sent<wire::Refresh>().empty());
  EXPECT_TRUE(out.ends.empty());
}

}  // namespace
}  // namespace motley::engine

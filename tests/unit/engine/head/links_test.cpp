// What the coordinator is told of links.

#include <gtest/gtest.h>

#include <numeric>

#include "fixture.h"

namespace motley::engine {
namespace {

class CoordinatorLinks : public CoordinatorTest {
 protected:
  CoordinatorLinks() {
    options.steps = 100;
    options.global_batch = 32;
  }
  [[nodiscard]] std::uint64_t bytes() const {
    return std::accumulate(layout.chunks().begin(), layout.chunks().end(), std::uint64_t{0},
                           [](std::uint64_t sum, const Chunk& chunk) { return sum + chunk.elements * sizeof(float); });
  }
  Peer& arrive(SessionId session, const std::string& name, Locality locality) {
    Peer& peer = open(session, name, locality);
    ready(peer);
    now += ms(200);
    synced(peer);
    return peer;
  }
  /// Answers the oldest grant, and tells of the one before.
  void work_and_tell(Peer& peer, std::uint64_t before) {
    const wire::Grant grant = begun(peer);
    now += ms(20);
    wire::Finish done;
    done.pass = grant.pass;
    done.lease = grant.lease;
    done.first = grant.first;
    done.count = grant.count;
    done.compute_seconds = 0.01;
    done.sent_lease = before;
    done.sent_bytes = bytes();
    done.sent_seconds = 0.4;
    say(peer, done);
    for (ChunkId chunk = 0; chunk < layout.chunks().size(); ++chunk) push(peer, grant, chunk);
  }
};

TEST_F(CoordinatorLinks, PlansSayWhatTheLinksOfOtherMachinesCarry) {
  options.min_workers = 2;
  make();
  Peer& local = arrive(1, "local", Locality::process);
  Peer& remote = arrive(2, "remote", Locality::network);
  std::uint64_t before = 0;
  for (int step = 0; step < 3; ++step) {
    ASSERT_FALSE(remote.grants.empty());
    const std::uint64_t lease = remote.grants[0].lease;
    work_and_tell(local, local.grants[0].lease);
    work_and_tell(remote, before);
    before = lease;
  }
  const auto planned = coordinator->forecast(32);
  ASSERT_TRUE(planned);
  EXPECT_FALSE(planned->workers[0].up_bytes_per_second);
  EXPECT_FALSE(planned->workers[0].down_bytes_per_second);
  EXPECT_NEAR(*planned->workers[1].up_bytes_per_second, static_cast<double>(bytes()) / 0.4, 1);
  EXPECT_NEAR(*planned->workers[1].down_bytes_per_second, static_cast<double>(bytes()) / 0.2, 1);
}

}  // namespace
}  // namespace motley::engine

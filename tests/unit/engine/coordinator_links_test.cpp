// What the coordinator learns of links, and the shares that follow from its own.

#include <gmock/gmock.h>

#include <map>
#include <numeric>

#include "coordinator_fixture.h"
#include "engine/coordinator_pace.h"

namespace motley::engine {
namespace {

using testing::HasSubstr;
using Workers = std::vector<cluster::WorkerId>;

Duration nanoseconds(double seconds) { return Duration(static_cast<std::int64_t>(1e9 * seconds)); }

// One worker in the coordinator's process, three behind its link; 0.12 ms a sample each.
class PaceOfLinks : public testing::Test {
 protected:
  static constexpr std::uint64_t kBatch = 3072;
  static constexpr double kPerSample = 0.00012;
  static constexpr std::uint64_t kBytes = 1'000'000;

  PaceOfLinks() {
    for (cluster::WorkerId worker = 1; worker <= 4; ++worker) {
      pace_.connected(worker, worker > 1);
      while (pace_.calibration(worker) > 0) {
        const std::uint64_t samples = pace_.calibration(worker);
        pace_.calibrated(worker, samples, kPerSample * static_cast<double>(samples));
      }
    }
  }
  static CoordinatorOptions options() {
    CoordinatorOptions options;
    options.global_batch = kBatch;
    return options;
  }
  /// A pass in which the contribution of each remote worker takes so many seconds, all at the same time or, apart, one
  /// after the other.
  void pass(const Workers& workers, double sends, bool apart = false) {
    std::vector<std::uint64_t> counts(workers.size());
    pace_.split(PassKind::train, kBatch, workers, false, counts);
    double longest = 0, begun = 0;
    for (std::size_t i = 0; i < workers.size(); ++i) {
      if (counts[i] == 0) continue;
      const cluster::WorkerId worker = workers[i];
      const double computes = kPerSample * static_cast<double>(counts[i]);
      if (const auto before = newest_.find(worker); before != newest_.end())
        pace_.sent(worker, before->second.lease, {kBytes, before->second.seconds});
      pace_.computed(PassKind::train, worker, ++lease_, counts[i], computes);
      const double end = worker == 1 ? computes : computes + begun + sends;
      if (apart && worker > 1) begun += sends;
      pace_.elapsed(PassKind::train, worker, lease_, counts[i], nanoseconds(end));
      if (worker > 1) newest_[worker] = {lease_, sends};
      longest = std::max(longest, end);
    }
    pace_.closed(nanoseconds(longest));
  }
  cluster::Pace::Verdict judged(const Workers& members, cluster::WorkerId worker) {
    return pace_.judge(kBatch, members, worker);
  }

  MeasuredPace pace_{options(), {kBytes, kBytes, kBytes, kBytes}};
  struct Sent {
    cluster::LeaseId lease;
    double seconds;
  };
  std::map<cluster::WorkerId, Sent> newest_;
  cluster::LeaseId lease_ = 0;
};

TEST_F(PaceOfLinks, WhoWouldLengthenTheStepBecauseOfTheSharedLinkIsLeftOut) {
  for (int i = 0; i < 10; ++i) pass({1, 4}, 0.05);
  for (int i = 0; i < 10; ++i) pass({1, 2}, 0.05);
  EXPECT_TRUE(judged({1, 2}, 4).pays) << "nothing says that the two share a link";
  for (int i = 0; i < 10; ++i) pass({1, 2, 3}, 0.1);  // together they have what one had
  const cluster::Pace::Verdict fourth = judged({1, 2, 3}, 4);
  EXPECT_FALSE(fourth.pays);
  EXPECT_NEAR(seconds(fourth.with), (kBatch * kPerSample + 3 * 0.15) / 4, 0.005);
  EXPECT_NEAR(seconds(fourth.without), (kBatch * kPerSample + 2 * 0.1) / 3, 0.005);
  const auto planned = pace_.forecast(kBatch, Workers{1, 2, 3}, Workers{4});
  ASSERT_TRUE(planned);
  EXPECT_NEAR(planned->step.link_seconds, 0.1, 0.01);
  EXPECT_GE(planned->workers[3].least_step_seconds, planned->step.seconds);
}

TEST_F(PaceOfLinks, FewerAreFasterWhereTheSharedLinkTakesLonger) {
  for (int i = 0; i < 10; ++i) pass({1, 2}, 0.15);
  for (int i = 0; i < 4; ++i) pass({1, 2, 3}, 0.3);
  std::vector<std::uint64_t> counts(3);
  pace_.split(PassKind::train, kBatch, Workers{1, 2, 3}, false, counts);
  EXPECT_EQ(std::ranges::count(counts, 0U), 1) << "0.26 s with one of them, 0.32 s with both";
}

TEST_F(PaceOfLinks, SeveralSlowLinksAreNotASharedOne) {
  for (int i = 0; i < 10; ++i) pass({1, 2}, 0.2);
  for (int i = 0; i < 10; ++i) pass({1, 2, 3}, 0.2);
  EXPECT_TRUE(judged({1, 2, 3}, 4).pays);
  EXPECT_EQ(pace_.forecast(kBatch, Workers{1, 2, 3}, Workers{4})->step.link_seconds, 0);
}

TEST_F(PaceOfLinks, WhoSendsAtAnotherTimeSaysNothingOfTheSharedLink) {
  for (int i = 0; i < 10; ++i) pass({1, 2}, 0.1);
  for (int i = 0; i < 10; ++i) pass({1, 2, 3}, 0.2, true);
  EXPECT_EQ(pace_.forecast(kBatch, Workers{1, 2, 3}, Workers{4})->step.link_seconds, 0);
}

TEST_F(PaceOfLinks, WhoWasLeftOutIsTriedAgainInTheEnd) {
  for (int i = 0; i < 10; ++i) pass({1, 4}, 0.05);
  for (int i = 0; i < 10; ++i) pass({1, 2}, 0.05);
  for (int i = 0; i < 10; ++i) pass({1, 2, 3}, 0.1);
  ASSERT_FALSE(judged({1, 2, 3}, 4).pays);
  const std::uint64_t samples = pace_.trial(4);
  for (int i = 0; i < 40; ++i) pace_.calibrated(4, samples, kPerSample * static_cast<double>(samples));
  EXPECT_TRUE(judged({1, 2, 3}, 4).pays);
}

TEST_F(PaceOfLinks, AContributionThatWasNotTakenAsAWholeSaysNothing) {
  for (int i = 0; i < 10; ++i) pass({1, 2}, 0);
  pace_.sent(2, lease_ + 1, {kBytes, 0.1});
  pace_.sent(2, 0, {kBytes, 0.1});
  EXPECT_FALSE(pace_.forecast(kBatch, Workers{1, 2}, {})->workers[1].up_bytes_per_second);
}

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
  Peer& arrive(SessionId session, const std::string& name, Reach reach) {
    Peer& peer = open(session, name, reach);
    ready(peer);
    now += ms(200);
    synced(peer);
    return peer;
  }
  /// Answers the oldest grant, and tells of the one before.
  void work_and_tell(Peer& peer, std::uint64_t before) {
    const wire::Grant grant = take(peer);
    begin(peer, grant);
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
  Peer& local = arrive(1, "local", Reach::process);
  Peer& remote = arrive(2, "remote", Reach::network);
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

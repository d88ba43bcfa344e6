// Work that moves between leases under way.

#include "fixture.h"

namespace motley::engine {
namespace {

class CoordinatorBalanceTest : public CoordinatorTest {
 protected:
  /// Two equal workers with eight micro-batches each, at the start of a step in which both are known.
  void start_pair() {
    options.min_workers = 2;
    make();
    a = &join(1, {}, false, kPerSample, 1);
    b = &join(2, {}, false, kPerSample, 1);
    low = take(*a);
    high = take(*b);
  }
  /// Three equal workers, of whom the third, whose lease has no partner, has done one of its eight samples when the
  /// others could be done.
  void start_three() {
    options.min_workers = 3;
    options.global_batch = 24;
    options.train_samples = 48;
    make();
    for (SessionId session = 1; session <= 3; ++session) join(session, {}, false, kPerSample, 1);
    for (auto& [session, peer] : peers) grants.push_back(take(peer));
    EXPECT_EQ(grants[2].limit, 0U) << "the odd one has no partner";
    now += kSample;
    progress(peers[3], grants[2], 1);
    now += 7 * kSample;
  }
  /// `count` samples of a lease, as it would be begun.
  static wire::Grant part(const wire::Grant& grant, std::uint64_t count) {
    wire::Grant result = grant;
    result.count = count;
    if (grant.from_end) result.first = grant.first + grant.count - count;
    return result;
  }
  void progress(Peer& peer, const wire::Grant& grant, std::uint64_t done) {
    say(peer, wire::Progress{grant.pass, grant.lease, done});
  }
  void answer(Peer& peer, const wire::Trim& trim, std::uint64_t done, std::uint64_t limit) {
    say(peer, wire::Progress{trim.pass, trim.lease, done, limit, trim.number});
  }
  static wire::Trim last_trim(const Peer& peer) {
    const std::vector<wire::Trim> trims = peer.all<wire::Trim>();
    EXPECT_FALSE(trims.empty());
    return trims.empty() ? wire::Trim{} : trims.back();
  }
  /// One sample of `a` each time; `b` does one in all and says nothing more.
  void fall_behind() {
    now += kSample;
    progress(*a, low, 1);
    progress(*b, high, 1);
    for (std::uint64_t done = 2; done <= 4; ++done) {
      now += kSample;
      progress(*a, low, done);
      if (!b->all<wire::Trim>().empty()) return;
    }
  }

  static constexpr double kPerSample = 0.0625;
  static constexpr Duration kSample = std::chrono::microseconds(62500);
  Peer* a = nullptr;
  Peer* b = nullptr;
  wire::Grant low, high;
  std::vector<wire::Grant> grants;  // of three
};

TEST_F(CoordinatorBalanceTest, NeighboursComputeTowardsEachOther) {
  start_pair();
  EXPECT_EQ(low.limit, 8U);
  EXPECT_FALSE(low.from_end);
  EXPECT_EQ(low.first, 0U);
  EXPECT_EQ(low.count, 15U) << "all but the first micro-batch of the other";
  EXPECT_EQ(high.limit, 8U);
  EXPECT_TRUE(high.from_end);
  EXPECT_EQ(high.first, 1U);
  EXPECT_EQ(high.count, 15U);
  compute(*a, part(low, 8));
  compute(*b, part(high, 8));
  expect_exact(1);
}

TEST_F(CoordinatorBalanceTest, ShortLeasesStayAsTheyWere) {
  options.min_workers = 2;
  make();
  Peer& one = join(1, {}, false, kPerSample, 3);
  Peer& two = join(2, {}, false, kPerSample, 3);
  for (Peer* peer : {&one, &two}) {
    ASSERT_EQ(peer->grants.size(), 1U);
    EXPECT_EQ(peer->grants[0].limit, 0U);
    EXPECT_FALSE(peer->grants[0].from_end);
    EXPECT_EQ(peer->grants[0].count, 8U);
  }
}

TEST_F(CoordinatorBalanceTest, FixedSharesNeverMove) {
  options.shares = {0.5, 0.5};
  start_pair();
  EXPECT_EQ(low.limit, 0U);
  EXPECT_EQ(low.count, 8U);
  fall_behind();
  EXPECT_TRUE(b->all<wire::Trim>().empty());
}

TEST_F(CoordinatorBalanceTest, TheBoundaryMovesWhenTheLateOneHasAgreed) {
  start_pair();
  fall_behind();
  const wire::Trim less = last_trim(*b);
  EXPECT_EQ(less.lease, high.lease);
  ASSERT_LT(less.count, 8U);
  EXPECT_GE(less.count, 2U) << "one sample is done, one is under way";
  EXPECT_TRUE(a->all<wire::Trim>().empty()) << "it might still compute them";
  answer(*b, less, 1, less.count);
  const wire::Trim more = last_trim(*a);
  EXPECT_EQ(more.count, 16 - less.count);
  compute(*a, part(low, more.count));
  compute(*b, part(high, less.count));
  expect_exact(1);
  ASSERT_EQ(output.steps.back().ranges.size(), 2U) << "no contribution more than without";
}

TEST_F(CoordinatorBalanceTest, WhatTheLateOneHasStartedStaysWithIt) {
  start_pair();
  fall_behind();
  const wire::Trim less = last_trim(*b);
  ASSERT_LT(less.count, 7U);
  answer(*b, less, 1, less.count + 1);
  EXPECT_EQ(last_trim(*a).count, 16 - less.count - 1);
  compute(*b, part(high, less.count + 1));
  compute(*a, part(low, 16 - less.count - 1));
  expect_exact(1);
}

TEST_F(CoordinatorBalanceTest, ARaiseThatComesTooLateIsHandedBack) {
  start_pair();
  fall_behind();
  const wire::Trim less = last_trim(*b);
  answer(*b, less, 1, less.count);
  begin(*a, part(low, 8));  // was on the way
  const wire::Trim back = last_trim(*b);
  EXPECT_EQ(back.count, 8U);
  EXPECT_GT(back.number, less.number);
  answer(*b, less, 1, less.count);  // a copy of the old answer says nothing about the new limit
  for (ChunkId chunk = 0; chunk < layout.chunks().size(); ++chunk) push(*a, part(low, 8), chunk);
  compute(*b, part(high, 8));
  expect_exact(1);
}

TEST_F(CoordinatorBalanceTest, BeginMayOvertakeTheAnswer) {
  start_pair();
  fall_behind();
  const wire::Trim less = last_trim(*b);
  begin(*b, part(high, less.count));
  EXPECT_EQ(last_trim(*a).count, 16 - less.count);
  compute(*a, part(low, 16 - less.count));
  for (ChunkId chunk = 0; chunk < layout.chunks().size(); ++chunk) push(*b, part(high, less.count), chunk);
  expect_exact(1);
}

TEST_F(CoordinatorBalanceTest, WhatALostPartnerHadGoesToTheOther) {
  start_pair();
  fall_behind();
  coordinator->session_closed(2, "reset", now);
  collect();
  ASSERT_EQ(a->grants.size(), 1U);
  EXPECT_EQ(a->grants[0].first, 8U);
  EXPECT_EQ(a->grants[0].count, 8U);
  compute(*a, part(low, 8));
  work(*a);
  expect_exact(1);
}

TEST_F(CoordinatorBalanceTest, ARangeThatIsNotOfTheLeaseIsRefused) {
  start_pair();
  begin(*b, wire::Grant{.pass = high.pass, .lease = high.lease, .first = 1, .count = 8});
  ASSERT_EQ(output.closed.count(2), 1U);
  EXPECT_EQ(output.closed[2].code, "protocol");
}

TEST_F(CoordinatorBalanceTest, AnIdleWorkerTakesOverTheEndOfALateLease) {
  start_three();
  Peer& late = peers[3];
  compute(peers[1], part(grants[0], 8));
  compute(peers[2], part(grants[1], 8));
  const wire::Trim less = last_trim(late);
  EXPECT_EQ(less.lease, grants[2].lease);
  ASSERT_LT(less.count, 8U);
  EXPECT_TRUE(peers[1].grants.empty() && peers[2].grants.empty());
  answer(late, less, 1, less.count);
  Peer& helper = peers[1].grants.empty() ? peers[2] : peers[1];
  ASSERT_EQ(helper.grants.size(), 1U);
  EXPECT_EQ(helper.grants[0].first, grants[2].first + less.count);
  EXPECT_EQ(helper.grants[0].count, 8 - less.count);
  work(helper);
  compute(late, part(grants[2], less.count));
  EXPECT_EQ(output.steps.size(), 1U);
  ASSERT_EQ(output.steps.back().ranges.size(), 4U);
}

}  // namespace
}  // namespace motley::engine

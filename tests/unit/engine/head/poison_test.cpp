// Contributions that are not finite or do not agree. After each the weights are those of one undisturbed machine.

#include <algorithm>
#include <limits>

#include "disturbed.h"

namespace motley::engine {
namespace {

class CoordinatorPoison : public CoordinatorDisturbed {
 protected:
  void poison(Peer& peer, const wire::Grant& grant, ChunkId chunk) {
    std::vector<float> values = gradient_sum(layout.chunks()[chunk], grant.pass_first + grant.first, grant.count);
    values[values.size() / 2] = std::numeric_limits<float>::quiet_NaN();
    deliver(peer, gradient_frame(peer, grant, chunk, values));
  }

  void two_with_keys() {
    options.shares = {1, 1, 1, 1};
    options.min_workers = 2;
    options.steps = 8;
    make();
    a = &open(1, {}, Locality::network, "key of a");
    b = &open(2, {}, Locality::network, "key of b");
    for (Peer* peer : {a, b}) ready(*peer);
    for (Peer* peer : {a, b}) synced(*peer);
  }

  /// By NaN, while b computes.
  void strike_out(Peer& peer) {
    for (int round = 0; round < 20 && output.closed.count(peer.session) == 0; ++round) {
      if (!peer.grants.empty()) {
        const wire::Grant grant = begun(peer);
        poison(peer, grant, 0);
      }
      while (!b->grants.empty() && output.closed.count(peer.session) == 0) work(*b);
    }
    ASSERT_EQ(output.closed.at(peer.session).code, "excluded");
  }

  [[nodiscard]] std::ptrdiff_t strikes_of(const std::string& name) const {
    return std::ranges::count_if(output.warnings, [&](const std::string& warning) {
      return warning.find(name) != std::string::npos && warning.find("of 3 strikes") != std::string::npos;
    });
  }

  /// To the end, while one is heard of but does nothing more.
  void run_without(const Peer& silent) {
    std::vector<Peer*> alive;
    for (auto& [session, peer] : peers) alive.push_back(&peer);
    for (int rounds = 0; rounds < 100 && coordinator->server().version() < 4; ++rounds) {
      bool worked = false;
      for (Peer* peer : alive) {
        if (peer == &silent || peer->grants.empty()) continue;
        work(*peer);
        worked = true;
      }
      if (!worked) pass_time(std::chrono::seconds(61), alive);
    }
    expect_exact(4);
  }
};

TEST_F(CoordinatorPoison, GoesToAnotherWorkerWhoDecides) {
  two();
  const wire::Grant grant = begun(*a);
  push(*a, grant, 0);
  poison(*a, grant, 1);
  EXPECT_TRUE(a->grants.empty());
  EXPECT_EQ(positions(*b), 16u);
  ASSERT_FALSE(output.warnings.empty());
  EXPECT_NE(output.warnings[0].find("w1"), std::string::npos);
  run_exact(4);
  EXPECT_FALSE(output.error.has_value());
}

TEST_F(CoordinatorPoison, ThreeStrikesExclude) {
  two();
  for (int strike = 0; strike < 3; ++strike) {
    ASSERT_EQ(coordinator->workers(), 2u);
    const wire::Grant grant = begun(*a);
    poison(*a, grant, 0);
    while (!b->grants.empty() && b->grants[0].version == grant.version) work(*b);
  }
  EXPECT_EQ(coordinator->workers(), 1u);
  EXPECT_EQ(output.closed.at(1).code, "excluded");
  EXPECT_EQ(events_of("w1").back(), Membership::excluded);
  open(9, "w1");
  ready(peers[9]);
  EXPECT_EQ(output.closed.at(9).code, "excluded") << "reconnecting does not shed strikes";
  run_exact(4);
}

TEST_F(CoordinatorPoison, AnotherNameDoesNotShedStrikes) {
  two_with_keys();
  strike_out(*a);
  ready(open(9, "innocent", Locality::network, "key of a"));
  EXPECT_EQ(output.closed.at(9).code, "excluded");
  Peer& other = open(10, "innocent", Locality::network, "another key");
  ready(other);
  EXPECT_EQ(output.closed.count(10), 0u);
}

TEST_F(CoordinatorPoison, WhoTakesAnothersNameHasStrikesOfItsOwn) {
  two_with_keys();
  lose(*a);
  Peer& impostor = open(7, "w1", Locality::network, "key of nobody");
  ready(impostor);
  synced(impostor);
  strike_out(impostor);
  EXPECT_EQ(events_of("w1 (2)").back(), Membership::excluded);
  Peer& again = open(8, "w1", Locality::network, "key of a");
  ready(again);
  synced(again);
  EXPECT_EQ(output.closed.count(8), 0u);
  EXPECT_EQ(events_of("w1").back(), Membership::readmitted);
}

TEST_F(CoordinatorPoison, ALoneWorkerTriesAgainItself) {
  make();
  Peer& only = join(1);
  const wire::Grant grant = begun(only);
  poison(only, grant, 2);
  ASSERT_EQ(only.grants.size(), 1u);
  run_exact(4);
}

TEST_F(CoordinatorPoison, TwiceEndsTheRun) {
  two();
  const wire::Grant grant = take(*a);
  poison(*a, grant, 1);  // before its Begin
  while (!b->grants.empty() && !output.error) {
    const wire::Grant mine = begun(*b);
    if (mine.first == grant.first) poison(*b, mine, 1);
  }
  ASSERT_TRUE(output.error.has_value());
  EXPECT_EQ(output.error->code, ErrorCode::diverged);
  EXPECT_NE(output.error->message.find("positions 0 to 7"), std::string::npos);
  EXPECT_EQ(output.times_finished, 0);
  EXPECT_EQ(output.closed.at(1).code, "diverged");
}

// Two names are had cheaply; the device of the head's own process is not.
TEST_F(CoordinatorPoison, TwoStrangersDoNotEndTheRunOfAHeadThatComputes) {
  make_with({1, 1, 1});
  Peer& first = join(1);
  Peer& second = join(2);
  join(3, {}, true);
  for (Peer* liar : {&first, &second}) {
    const wire::Grant grant = begun(*liar);
    poison(*liar, grant, 0);
  }
  EXPECT_TRUE(first.grants.empty());
  EXPECT_TRUE(second.grants.empty()) << "the head's own device is asked";
  run_exact(4);
  EXPECT_FALSE(output.error.has_value());
  EXPECT_EQ(strikes_of("w1"), 1);
  EXPECT_EQ(strikes_of("w2"), 1);
  EXPECT_EQ(strikes_of("w3"), 0);
}

TEST_F(CoordinatorPoison, WhereTheHeadDoesNotComputeAThirdWorkerIsAsked) {
  make_with({1, 1, 1});
  Peer& first = join(1);
  Peer& second = join(2);
  Peer& third = join(3);
  const wire::Grant grant = begun(first);
  poison(first, grant, 0);
  for (Peer* other : {&second, &third}) work(*other);
  while (!second.grants.empty() && second.grants[0].first < grant.first + grant.count) {
    const wire::Grant again = begun(second);
    poison(second, again, 0);
  }
  EXPECT_FALSE(output.error.has_value()) << "two of three said so";
  run_exact(4);
}

// Today's attack: three times the weight, then heartbeats alone.
TEST_F(CoordinatorPoison, AWeightThatNobodyElseDeclaresIsNotBelieved) {
  two();
  Peer& c = join(3);
  const wire::Grant grant = take(*a);
  say(*a, wire::Begin{grant.pass, grant.lease, grant.first, grant.count, 3.0 * static_cast<double>(grant.count), 0});
  work(*b);
  pass_time(std::chrono::seconds(61), {a, b, &c});
  pass_time(ms(100), {a, b, &c});
  run_without(*a);
  EXPECT_EQ(strikes_of("w2"), 0);
  EXPECT_EQ(strikes_of("w3"), 0);
  EXPECT_GE(strikes_of("w1"), 1);
  EXPECT_FALSE(output.error.has_value());
}

TEST_F(CoordinatorPoison, AWeightThatTheHeadsOwnDeviceRefutesIsNotBelieved) {
  make_with({1, 1});
  Peer& liar = join(1);
  Peer& own = join(2, {}, true);
  const wire::Grant grant = take(liar);
  say(liar, wire::Begin{grant.pass, grant.lease, grant.first, grant.count, 3.0 * static_cast<double>(grant.count), 0});
  work(own);
  pass_time(std::chrono::seconds(61), {&liar, &own});
  pass_time(ms(100), {&liar, &own});
  ASSERT_FALSE(own.grants.empty()) << "the liar is overdue";
  run_without(liar);
  EXPECT_EQ(strikes_of("w2"), 0);
  EXPECT_GE(strikes_of("w1"), 1);
}

TEST_F(CoordinatorPoison, AChunkThatWasRefusedBecauseOfItIsComputedAgain) {
  two();
  const wire::Grant grant = begun(*a);
  push(*a, grant, 0);
  pass_time(std::chrono::seconds(61), {a, b});
  Peer& c = join(3);
  pass_time(ms(100), {a, b, &c});
  ASSERT_FALSE(c.grants.empty()) << "both are overdue";
  const wire::Grant again = take(c);
  ASSERT_EQ(again.first, grant.first);
  begin(c, again);
  push(c, again, 0);  // not needed: the first one is there
  poison(*a, grant, 1);
  for (ChunkId chunk = 1; chunk < layout.chunks().size(); ++chunk) push(c, again, chunk);
  run_exact(4);
}

TEST_F(CoordinatorPoison, ALossThatIsNotFiniteIsPoison) {
  two();
  const wire::Grant grant = take(*a);
  say(*a, wire::Begin{grant.pass, grant.lease, grant.first, grant.count, 8, std::numeric_limits<double>::infinity()});
  EXPECT_EQ(positions(*b), 16u);
  run_exact(4);
}

TEST_F(CoordinatorPoison, AfterAChunkWasSummedOnlyTheOthersAreComputedAgain) {
  two();
  work(*b);
  const wire::Grant grant = begun(*a);
  push(*a, grant, 0);
  EXPECT_EQ(b->weights[1].size(), 1u);
  poison(*a, grant, 1);
  EXPECT_EQ(positions(*b), 8u);
  run_exact(4);
}

TEST_F(CoordinatorPoison, AReplacementMustDeclareTheSameWeight) {
  two();
  const wire::Grant grant = begun(*a);
  push(*a, grant, 0);
  work(*b);
  Peer& c = join(3);
  lose(*a);
  Peer& liar = b->grants.empty() ? c : *b;
  const wire::Grant again = take(liar);
  say(liar, wire::Begin{again.pass, again.lease, again.first, again.count, 99, 0});
  EXPECT_FALSE(output.warnings.empty());
  run_exact(4);
}

TEST_F(CoordinatorDisturbed, AWorkerThatCannotComputeIsStruck) {
  two();
  for (int strike = 0; strike < 3; ++strike) {
    const wire::Grant grant = take(*a);
    say(*a, wire::Failed{grant.pass, grant.lease, "out of memory"});
    while (!b->grants.empty() && b->grants[0].version == grant.version) work(*b);
  }
  EXPECT_EQ(events_of("w1").back(), Membership::excluded);
  run_exact(4);
}

}  // namespace
}  // namespace motley::engine

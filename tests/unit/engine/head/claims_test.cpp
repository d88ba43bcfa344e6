// Workers that say of themselves what cannot be. Nobody waits for them, and the weights are those of one undisturbed
// machine.

#include <functional>
#include <limits>

#include "disturbed.h"

namespace motley::engine {
namespace {

class CoordinatorClaims : public CoordinatorDisturbed {
 protected:
  void steps(std::uint64_t count) {
    options.steps = count;
    two();
  }
  void hand_back(Peer& peer, const wire::Grant& grant) {
    wire::Finish nothing;
    nothing.pass = grant.pass;
    nothing.lease = grant.lease;
    nothing.first = grant.first;
    say(peer, nothing);
  }
  /// A chunk of numbers that are finite, and no gradient of these samples.
  void push_far(Peer& peer, const wire::Grant& grant, ChunkId chunk) {
    const std::vector<float> made_up(layout.chunks()[chunk].elements, 1e30F);
    deliver(peer, gradient_frame(peer, grant, chunk, made_up));
  }
  /// Both answer what they have, until this version is open.
  void until(std::uint64_t version) {
    for (int rounds = 0; rounds < 1000 && coordinator->server().version() < version; ++rounds)
      for (Peer* peer : {a, b})
        if (!peer->grants.empty() && coordinator->server().version() < version) work(*peer);
    ASSERT_EQ(coordinator->server().version(), version);
  }
  /// So many steps that it is known what contributions look like.
  void settled() {
    steps(24);
    until(18);
  }
  /// What both answer counts, whatever it looks like.
  void believed(const std::function<void(Peer&, const wire::Grant&)>& answer) {
    answer(*a, take(*a));
    for (Peer* peer : {b, a})
      while (!peer->grants.empty() && coordinator->server().version() == 18) answer(*peer, take(*peer));
    EXPECT_EQ(coordinator->server().version(), 19u);
    EXPECT_FALSE(output.error.has_value());
    run();
    EXPECT_EQ(output.closed.at(1).code, "done") << "nobody was struck out";
  }
};

TEST_F(CoordinatorClaims, YearsOfComputingHoldUpNobody) {
  steps(12);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double claim : {1e300, std::numeric_limits<double>::quiet_NaN(), -1.0, kInfinity, 1e-300, 1e300}) {
    a->seconds_per_sample = claim;
    until(coordinator->server().version() + 1);
  }
  const auto granted = a->grants;
  ASSERT_FALSE(granted.empty()) << "it has a share as before";
  while (!b->grants.empty()) work(*b);
  pass_time(std::chrono::seconds(61), {a, b});
  EXPECT_FALSE(b->grants.empty()) << "what it holds is granted to the other";
}

TEST_F(CoordinatorClaims, WhatWasNeverAskedForIsNotMeasured) {
  steps(4);
  wire::Grant made_up = a->grants.front();
  made_up.lease = 1000;
  for (int i = 0; i < 50; ++i) finish(*a, made_up);
  made_up = a->grants.front();
  made_up.pass ^= 1;
  finish(*a, made_up);
  EXPECT_TRUE(output.closed.empty());
  run_exact(4);
}

TEST_F(CoordinatorClaims, HowLongItTookCountsAsItWasSaidFirst) {
  steps(6);
  until(2);
  const wire::Grant grant = take(*a);
  compute(*a, grant);
  const double said = a->seconds_per_sample * static_cast<double>(grant.count);
  a->seconds_per_sample *= 3;
  finish(*a, grant);
  a->seconds_per_sample /= 3;
  until(3);
  const auto& workers = output.steps.back().workers;
  const auto part = std::ranges::find(workers, std::uint64_t{1}, &WorkerStep::worker);
  ASSERT_NE(part, workers.end());
  EXPECT_DOUBLE_EQ(part->compute_seconds, said);
  run_exact(6);
}

TEST_F(CoordinatorClaims, LeasesHandedBackAreStrikes) {
  steps(12);
  int handed_back = 0;
  while (output.closed.count(1) == 0 && handed_back < 100) {
    while (!b->grants.empty() && a->grants.empty()) work(*b);
    ASSERT_FALSE(a->grants.empty());
    const wire::Grant grant = take(*a);
    hand_back(*a, grant);
    ++handed_back;
  }
  EXPECT_EQ(output.closed.at(1).code, "excluded");
  EXPECT_LT(handed_back, 10);
  run_exact(12);
}

TEST_F(CoordinatorClaims, OneThatIsComputedNowAndThenDoesNotMakeUpForMoreThatAreHandedBack) {
  steps(60);
  for (int lease = 0; output.closed.count(1) == 0 && lease < 60; ++lease) {
    while (!b->grants.empty() && a->grants.empty()) work(*b);
    ASSERT_FALSE(a->grants.empty());
    if (lease % 3 == 2) {
      work(*a);
    } else {
      hand_back(*a, take(*a));
    }
  }
  EXPECT_EQ(output.closed.at(1).code, "excluded");
  run_exact(60);
}

TEST_F(CoordinatorClaims, ALeaseHandedBackGoesToTheOther) {
  steps(4);
  const wire::Grant grant = take(*a);
  hand_back(*a, grant);
  EXPECT_TRUE(a->grants.empty());
  EXPECT_EQ(positions(*b), 16u);
  run_exact(4);
}

TEST_F(CoordinatorClaims, AWeightBeyondAnySampleIsPoison) {
  steps(4);
  const wire::Grant grant = take(*a);
  say(*a, wire::Begin{grant.pass, grant.lease, grant.first, grant.count, 1e308, 1});
  EXPECT_EQ(positions(*b), 16u);
  run_exact(4);
}

TEST_F(CoordinatorClaims, AWeightThatNoOtherComesNearIsComputedAgain) {
  settled();
  const wire::Grant grant = take(*a);
  say(*a, wire::Begin{grant.pass, grant.lease, grant.first, grant.count, 1e6, 1});
  ASSERT_FALSE(output.warnings.empty());
  EXPECT_NE(output.warnings.back().find("no other worker comes near"), std::string::npos);
  run_exact(24);
}

TEST_F(CoordinatorClaims, ALossThatNoOtherComesNearIsComputedAgain) {
  settled();
  const wire::Grant grant = take(*a);
  say(*a, wire::Begin{grant.pass, grant.lease, grant.first, grant.count, static_cast<double>(grant.count), -1e12});
  ASSERT_FALSE(output.warnings.empty());
  run_exact(24);
}

TEST_F(CoordinatorClaims, AGradientThatNoOtherComesNearIsComputedAgain) {
  settled();
  const wire::Grant grant = begun(*a);
  push(*a, grant, 1);
  push_far(*a, grant, 0);
  ASSERT_FALSE(output.warnings.empty());
  EXPECT_NE(output.warnings.back().find("no other worker comes near"), std::string::npos);
  run_exact(24);
}

TEST_F(CoordinatorClaims, AGradientThatCameBeforeItsWeightIsComparedWithIt) {
  settled();
  const wire::Grant grant = take(*a);
  push_far(*a, grant, 0);
  EXPECT_TRUE(output.warnings.empty());
  begin(*a, grant);
  ASSERT_FALSE(output.warnings.empty());
  run_exact(24);
}

TEST_F(CoordinatorClaims, AGradientThatTwoFindIsBelieved) {
  settled();
  believed([this](Peer& peer, const wire::Grant& grant) {
    begin(peer, grant);
    for (ChunkId chunk = 0; chunk < layout.chunks().size(); ++chunk) push_far(peer, grant, chunk);
    finish(peer, grant);
  });
}

// Whatever the other computes is far from that.
TEST_F(CoordinatorClaims, WhoSaysAlwaysThatThereIsNoGradientDoesNotGetTheOtherStruckOut) {
  steps(40);
  for (int rounds = 0; rounds < 1000 && coordinator->server().version() < 30; ++rounds) {
    if (!b->grants.empty()) {
      const wire::Grant grant = begun(*b);
      for (ChunkId chunk = 0; chunk < layout.chunks().size(); ++chunk) {
        const std::vector<float> nothing(layout.chunks()[chunk].elements, 0.0F);
        deliver(*b, gradient_frame(*b, grant, chunk, nothing));
      }
      finish(*b, grant);
    }
    if (!a->grants.empty()) work(*a);
  }
  EXPECT_EQ(coordinator->server().version(), 30U);
  EXPECT_TRUE(output.closed.empty());
  EXPECT_FALSE(output.warnings.empty()) << "it is said that one of the two is wrong";
}

TEST_F(CoordinatorClaims, WhatTwoSayIsBelieved) {
  settled();
  believed([this](Peer& peer, const wire::Grant& grant) {
    const double weight = 1000.0 * static_cast<double>(grant.count);
    say(peer, wire::Begin{grant.pass, grant.lease, grant.first, grant.count, weight, 1});
    for (ChunkId chunk = 0; chunk < layout.chunks().size(); ++chunk) push(peer, grant, chunk);
    finish(peer, grant);
  });
}

TEST_F(CoordinatorClaims, LinesOnTheScreenAreFew) {
  steps(4);
  const std::uint64_t pass = std::uint64_t{static_cast<std::uint8_t>(PassKind::calibrate)} << 56;
  for (int i = 0; i < 1000; ++i) say(*a, wire::Failed{pass, 0, "too tired"});
  EXPECT_LT(output.warnings.size(), 20u);
  run_exact(4);
}

}  // namespace
}  // namespace motley::engine

// Shares that are computed twice (train.verify): what two come to counts, and who comes to something else is found.

#include <functional>
#include <set>
#include <utility>

#include "engine/head/bearing.h"
#include "fixture.h"
#include "modes/work/pass.h"

namespace motley::engine {
namespace {

constexpr std::uint64_t kBefore = 64;  // steps, until the first share is computed twice

class CoordinatorVerify : public CoordinatorTest {
 protected:
  /// Three workers; the first of them may compute in the head's own process.
  void three(std::uint64_t steps, bool local = false, double part = 1) {
    options.steps = steps;
    options.min_workers = 3;
    options.verify = {.part = part, .secret = 5, .alike = options.verify.alike, .after = kBefore};
    make();
    for (const SessionId session : {1U, 2U, 3U}) join(session, {}, local && session == 1);
  }
  /// Until the run ends. `lies`: by how many quarters this gradient is too large.
  void answer(const std::function<int(const Peer& peer, const wire::Grant& grant, bool again)>& lies) {
    for (int rounds = 0; rounds < 10000 && coordinator->server().version() < options.steps; ++rounds) {
      for (auto& [session, peer] : peers) {
        if (peer.grants.empty() || output.closed.count(session) > 0) continue;
        const wire::Grant grant = take(peer);
        const bool again = !shares_.insert({session, grant.pass}).second;
        seconds_ += again ? 1 : 0;
        samples_ += again ? grant.count : 0;
        begin(peer, grant);
        const float factor = 1 + 0.25F * static_cast<float>(lies(peer, grant, again));
        for (ChunkId left = static_cast<ChunkId>(layout.chunks().size()); left > 0; --left) {  // as they come
          const ChunkId chunk = left - 1;
          std::vector<float> sum = gradient_sum(layout.chunks()[chunk], grant.pass_first + grant.first, grant.count);
          for (float& value : sum) value *= factor;
          deliver(peer, gradient_frame(peer, grant, chunk, sum));
        }
        finish(peer, grant);
      }
    }
  }
  /// Steps, until this session was closed.
  [[nodiscard]] std::uint64_t answer_until_out(SessionId liar, const std::function<int(std::uint64_t step)>& lies) {
    std::uint64_t last = 0;
    answer([&](const Peer& peer, const wire::Grant& grant, bool) {
      if (peer.session != liar) return 0;
      last = modes::PassId::unpack(grant.pass).number;
      return lies(last);
    });
    EXPECT_TRUE(output.closed.contains(liar) && output.closed.at(liar).code == "excluded");
    return last;
  }
  static bool honest(const Peer&, const wire::Grant&, bool) { return false; }

  std::set<std::pair<SessionId, std::uint64_t>> shares_;
  int seconds_ = 0;            // leases beyond the share of a pass
  std::uint64_t samples_ = 0;  // of them
};

TEST_F(CoordinatorVerify, WhatTwoComeToCounts) {
  three(80);
  answer(honest);
  EXPECT_GE(seconds_, 10);
  EXPECT_TRUE(output.warnings.empty());
  std::uint64_t told = 0;
  for (const StepClosed& step : output.steps) told += step.verified;
  EXPECT_EQ(told, samples_);
  expect_exact(80);
}

TEST_F(CoordinatorVerify, WhatDrawsIsComputedTwiceWhereAllDrawTheSame) {
  options.verify.alike = true;
  numbers_of = [](SessionId) { return 7; };
  three(80);
  answer(honest);
  EXPECT_GE(seconds_, 10);
  EXPECT_TRUE(output.warnings.empty());
  expect_exact(80);
}

TEST_F(CoordinatorVerify, WhatDrawsIsNotComputedTwiceWhereOneDrawsOthers) {
  options.verify.alike = true;
  numbers_of = [](SessionId session) { return session == 3 ? 8 : 7; };
  three(80);
  answer(honest);
  EXPECT_EQ(seconds_, 0);
}

TEST_F(CoordinatorVerify, WhatDrawsIsNotComputedTwiceWhereThatIsNotSaid) {
  options.verify.alike = true;
  three(80);
  answer(honest);
  EXPECT_EQ(seconds_, 0);
}

TEST_F(CoordinatorVerify, WhoComesAndDrawsOthersEndsSecondLooks) {
  options.verify.alike = true;
  numbers_of = [](SessionId session) { return session == 4 ? 8 : 7; };
  three(160);
  int before = -1;
  answer([&](const Peer& peer, const wire::Grant& grant, bool) {
    if (before < 0 && modes::PassId::unpack(grant.pass).number >= 80) {
      before = seconds_;
      join(4);
    }
    return peer.session == 4 ? 2 : 0;
  });
  EXPECT_GE(before, 1);
  EXPECT_LE(seconds_, before + 2) << "those of the pass that was open";
  for (const SessionId session : {1U, 2U, 3U, 4U}) EXPECT_EQ(output.closed.at(session).code, "done") << session;
}

TEST_F(CoordinatorVerify, NoneAreComputedTwiceAtFirst) {
  three(modes::Verify::kWithReasonAfter);
  answer(honest);
  EXPECT_EQ(seconds_, 0);
  expect_exact(modes::Verify::kWithReasonAfter);
}

TEST_F(CoordinatorVerify, EachWorkerIsLookedAtEarlyAndOnce) {
  three(kBefore, false, 1e-9);
  answer(honest);
  EXPECT_EQ(seconds_, 3);
  expect_exact(kBefore);
}

TEST_F(CoordinatorVerify, WhoLiesInSecondLooksDoesNotCount) {
  three(90);
  answer([](const Peer& peer, const wire::Grant&, bool again) { return peer.session == 2 && again; });
  EXPECT_EQ(output.closed.at(2).code, "excluded");
  EXPECT_EQ(output.closed.at(1).code, "done");
  EXPECT_EQ(output.closed.at(3).code, "done");
  expect_exact(90);
}

class Liar : public CoordinatorVerify, public testing::WithParamInterface<SessionId> {};

TEST_P(Liar, IsFound) {
  three(kBefore + 30);
  answer([](const Peer& peer, const wire::Grant&, bool) { return peer.session == GetParam(); });
  for (const SessionId session : {1U, 2U, 3U})
    EXPECT_EQ(output.closed.at(session).code, session == GetParam() ? "excluded" : "done") << session;
}

INSTANTIATE_TEST_SUITE_P(CoordinatorVerify, Liar, testing::Values(1, 2, 3));

TEST_F(CoordinatorVerify, TheHeadsOwnDeviceSettlesIt) {
  three(kBefore + 30, true);
  answer([](const Peer& peer, const wire::Grant&, bool) { return peer.session == 3; });
  EXPECT_EQ(output.closed.at(3).code, "excluded");
  EXPECT_EQ(output.closed.at(2).code, "done");
}

constexpr double kUsualPart = 0.005;
constexpr std::uint64_t kSoon = 50, kLongRun = 300;

TEST_F(CoordinatorVerify, WhoTurnsItsGradientsRoundIsOutSoon) {
  three(200, false, kUsualPart);
  EXPECT_LT(answer_until_out(2, [](std::uint64_t) { return -8; }), kSoon);
  EXPECT_EQ(output.closed.at(1).code, "done");
  EXPECT_EQ(output.closed.at(3).code, "done");
}

TEST_F(CoordinatorVerify, WhoBeginsLateToTurnThemRoundIsOutAsSoon) {
  three(kLongRun, true, kUsualPart);
  EXPECT_LT(answer_until_out(3, [](std::uint64_t step) { return step < 200 ? 0 : -8; }), 200 + kSoon);
  EXPECT_EQ(output.closed.at(2).code, "done");
}

TEST_F(CoordinatorVerify, OneLieInFiftyIsSeenBeforeItCounts) {
  three(kLongRun, false, kUsualPart);
  EXPECT_LT(answer_until_out(2, [](std::uint64_t step) { return step % 50 == 40 ? -8 : 0; }), kLongRun);
  // Smaller chunks that came before it tells are summed.
  const ps::Server expected = reference(kLongRun);
  for (ChunkId chunk = 0; chunk <= pointing_chunk(layout); ++chunk) {
    const auto a = expected.weights(chunk).bytes();
    const auto b = coordinator->server().weights(chunk).bytes();
    EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end())) << "chunk " << chunk;
  }
}

TEST_F(CoordinatorVerify, BesideTheHeadsOwnDeviceOneIsOutSoon) {
  options.steps = 200;
  options.min_workers = 2;
  options.verify = {.part = kUsualPart, .secret = 5, .after = kBefore};
  make();
  join(1, {}, true);
  join(2);
  EXPECT_LT(answer_until_out(2, [](std::uint64_t) { return -8; }), kSoon);
}

TEST_F(CoordinatorVerify, WhoIsOnlyLargerIsLookedAtToo) {
  three(200, false, kUsualPart);
  EXPECT_LT(answer_until_out(2, [](std::uint64_t) { return 1; }), kSoon) << "by its first look at the latest";
}

TEST_F(CoordinatorVerify, PartsOfASecondLookHaveAnEnd) {
  three(kBefore + 30);
  for (int rounds = 0; rounds < 10000 && coordinator->server().version() < options.steps; ++rounds) {
    for (auto& [session, peer] : peers) {
      if (peer.grants.empty() || output.closed.count(session) > 0) continue;
      wire::Grant grant = take(peer);
      const bool again = !shares_.insert({session, grant.pass}).second;
      if (session == 2 && again && grant.count > 1) grant.count = 1;
      compute(peer, grant);
    }
  }
  EXPECT_EQ(output.closed.at(1).code, "done");
  EXPECT_EQ(output.closed.at(3).code, "done");
  expect_exact(kBefore + 30);
}

TEST_F(CoordinatorVerify, MoreClaimsThanAreKeptDoNoHarm) {
  constexpr SessionId kLiars = 40;
  options.train_samples = 400;
  options.global_batch = 200;
  options.steps = kBefore + 3;
  options.min_workers = kLiars;
  options.verify = {.part = 1, .secret = 5, .after = kBefore};
  make();
  for (SessionId session = 1; session <= kLiars; ++session) join(session);
  answer([](const Peer& peer, const wire::Grant&, bool) { return peer.session; });
  EXPECT_EQ(coordinator->server().version(), options.steps);
}

TEST_F(CoordinatorVerify, WhereOnlyTwoAreThereNobodyIsStruck) {
  options.steps = kBefore + 20;
  options.min_workers = 2;
  options.verify = {.part = 1, .secret = 5, .after = kBefore};
  make();
  join(1);
  join(2);
  answer([](const Peer& peer, const wire::Grant&, bool) { return peer.session == 2; });
  ASSERT_FALSE(output.warnings.empty());
  EXPECT_NE(output.warnings.back().find("comes to another gradient"), std::string::npos);
  for (const SessionId session : {1U, 2U}) EXPECT_EQ(output.closed.at(session).code, "done");
}

}  // namespace
}  // namespace motley::engine

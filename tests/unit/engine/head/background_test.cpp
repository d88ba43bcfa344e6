// A worker that does not pay for gradients evaluates while the others train.

#include <gmock/gmock.h>

#include "fixture.h"

namespace motley::engine {
namespace {

class BackgroundTest : public CoordinatorTest {
 protected:
  BackgroundTest() {
    options.global_batch = 32;
    options.train_samples = 96;
    options.test_samples = 24;
    options.evaluate_every = 2;
    options.steps = 8;
  }

  /// One that trains and one that is parked; two steps are done, an evaluation is due.
  void begin() {
    make();
    Peer& fast = join(1, "fast", false, 0.001);
    work(fast);
    Peer& slow = join(2, "slow", false, 0.5);
    ASSERT_THAT(events_of("slow"), testing::ElementsAre(Membership::joined, Membership::parked));
    work(fast);
    ASSERT_EQ(slow.grants.size(), 1u);
    trial = slow.grants[0];
  }

  /// What the slow worker says of its evaluation: right, or 18 right answers of 24 where others have none.
  void say_it(bool right) {
    if (right) return finish(peers[2], peers[2].grants.at(0));
    wire::Finish lie;
    lie.pass = trial.pass;
    lie.lease = trial.lease;
    lie.count = trial.count;
    lie.weight = 24;
    lie.correct = 18;
    lie.loss_sum = 0.25 * loss_of(0, 24);
    say(peers[2], lie);
  }

  wire::Grant trial;
};

TEST_F(BackgroundTest, TheOthersTrainOnMeanwhile) {
  begin();
  Peer& fast = peers[1];
  Peer& slow = peers[2];
  EXPECT_EQ(trial.pass >> 56, static_cast<std::uint64_t>(PassKind::evaluate));
  EXPECT_EQ(trial.version, 2u);
  EXPECT_EQ(trial.count, 24u);
  EXPECT_EQ(slow.weights.count(2), 1u);
  ASSERT_EQ(fast.grants.size(), 1u);
  EXPECT_EQ(fast.grants[0].pass >> 56, static_cast<std::uint64_t>(PassKind::train));
  work(fast);
  EXPECT_TRUE(output.evaluations.empty());
  work(slow);
  ASSERT_EQ(output.evaluations.size(), 1u);
  EXPECT_EQ(output.evaluations[0].version, 2u);
  EXPECT_EQ(output.evaluations[0].samples, 24u);
  EXPECT_EQ(output.evaluations[0].loss_sum, loss_of(0, 24));
  run_exact(8);
  EXPECT_EQ(output.evaluations.back().version, 8u);
}

TEST_F(BackgroundTest, TheEndOfTheRunWaitsForIt) {
  options.steps = 4;
  begin();
  Peer& fast = peers[1];
  work(fast);
  work(fast);
  EXPECT_TRUE(fast.grants.empty()) << "the last evaluation comes after it";
  work(peers[2]);
  run();
  ASSERT_EQ(output.evaluations.size(), 2u);
  EXPECT_EQ(output.evaluations[0].version, 2u);
  EXPECT_EQ(output.evaluations[1].version, 4u);
  expect_exact(4);
}

TEST_F(BackgroundTest, TheEndOfTheRunDoesNotWaitForWhoIsTooSlow) {
  options.steps = 4;
  options.timeouts.lease_unknown = ms(500);
  begin();
  Peer& fast = peers[1];
  work(fast);
  work(fast);
  pass_time(ms(1000), {&fast, &peers[2]});
  ASSERT_EQ(fast.grants.size(), 1u);
  EXPECT_EQ(fast.grants[0].version, 4u);
  work(fast);
  EXPECT_EQ(output.evaluations.size(), 1u);
  EXPECT_EQ(output.times_finished, 1);
}

TEST_F(BackgroundTest, WhoIsLostIsMadeUpForByTheOthers) {
  begin();
  coordinator->session_closed(2, "gone", now);
  collect();
  Peer& fast = peers[1];
  work(fast);
  ASSERT_EQ(fast.grants.size(), 1u);
  EXPECT_EQ(fast.grants[0].pass >> 56, static_cast<std::uint64_t>(PassKind::evaluate));
  EXPECT_EQ(fast.grants[0].version, 3u);
  run_exact(8);
}

TEST_F(BackgroundTest, WhoIsTooSlowIsNotAskedAgain) {
  options.timeouts.lease_unknown = ms(500);
  begin();
  Peer& fast = peers[1];
  Peer& slow = peers[2];
  pass_time(ms(1000), {&fast, &slow});
  const bool cancelled = std::ranges::any_of(slow.control, [&](const wire::Message& message) {
    const auto* cancel = std::get_if<wire::Cancel>(&message);
    return cancel != nullptr && cancel->lease == trial.lease && cancel->pass == trial.pass;
  });
  EXPECT_TRUE(cancelled);
  slow.grants.clear();
  work(fast);
  ASSERT_EQ(fast.grants.size(), 1u);
  EXPECT_EQ(fast.grants[0].pass >> 56, static_cast<std::uint64_t>(PassKind::evaluate));
  finish(slow, trial);
  EXPECT_TRUE(output.evaluations.empty()) << "nobody waits for it any more";
  run_exact(8);
  for (const Evaluated& evaluation : output.evaluations) EXPECT_NE(evaluation.version, 2u);
}

TEST_F(BackgroundTest, AFailureIsMadeUpFor) {
  begin();
  say(peers[2], wire::Failed{trial.pass, trial.lease, "out of memory"});
  peers[2].grants.clear();
  work(peers[1]);
  EXPECT_EQ(peers[1].grants.at(0).pass >> 56, static_cast<std::uint64_t>(PassKind::evaluate));
  run_exact(8);
}

TEST_F(BackgroundTest, TheNextStepWaitsWhereItsRateFollows) {
  options.rates_follow_evaluations = true;
  output.rates = {0.125};
  make();
  Peer& fast = join(1, "fast", false, 0.001);
  work(fast);
  Peer& slow = join(2, "slow", false, 0.5);
  work(fast);
  EXPECT_TRUE(slow.grants.empty());
  ASSERT_EQ(fast.grants.size(), 1u);
  EXPECT_EQ(fast.grants[0].pass >> 56, static_cast<std::uint64_t>(PassKind::evaluate));
  EXPECT_EQ(coordinator->server().learning_rate(0), 0.25);
  work(fast);
  EXPECT_EQ(coordinator->server().learning_rate(0), 0.125);
  ASSERT_EQ(fast.grants.size(), 1u);
  EXPECT_EQ(fast.grants[0].pass >> 56, static_cast<std::uint64_t>(PassKind::train));
}

TEST_F(BackgroundTest, AResumedRunEvaluatesFirstWhatItsRateFollows) {
  options.rates_follow_evaluations = true;
  make(2);
  Peer& fast = join(1, "fast", false, 0.001);
  ASSERT_EQ(fast.grants.size(), 1u);
  EXPECT_EQ(fast.grants[0].pass >> 56, static_cast<std::uint64_t>(PassKind::evaluate));
}

class ComparedBackgroundTest : public BackgroundTest, public testing::WithParamInterface<bool> {
 protected:
  ComparedBackgroundTest() { options.verify.part = 0.005; }

  /// Both evaluate version 2, the slow one before the others (the parameter) or after them.
  void both(bool right) {
    begin();
    ASSERT_EQ(trial.version, 2u);
    ASSERT_EQ(peers[1].grants.at(0).pass, trial.pass) << "the others evaluate it as well";
    if (GetParam()) say_it(right);
    work(peers[1]);
    if (!GetParam()) say_it(right);
    peers[2].grants.clear();
    ASSERT_EQ(output.evaluations.size(), 1u);
    EXPECT_EQ(output.evaluations[0].loss_sum, loss_of(0, 24)) << "that of everybody is told";
  }
};

TEST_P(ComparedBackgroundTest, WhoComesToTheSameIsBelievedNextTime) {
  both(true);
  EXPECT_TRUE(output.warnings.empty());
  work(peers[1]);
  work(peers[1]);
  ASSERT_EQ(peers[2].grants.size(), 1u);
  EXPECT_EQ(peers[2].grants[0].version, 4u);
  EXPECT_EQ(peers[1].grants.at(0).pass >> 56, static_cast<std::uint64_t>(PassKind::train)) << "nobody else evaluates";
  work(peers[2]);
  EXPECT_EQ(output.evaluations.back().version, 4u);
  run_exact(8);
}

TEST_P(ComparedBackgroundTest, WhoComesToSomethingElseIsNamedAndNotAskedAgain) {
  both(false);
  ASSERT_EQ(output.warnings.size(), 1u);
  EXPECT_THAT(output.warnings[0], testing::StartsWith("slow evaluates the same weights to a loss of "));
  EXPECT_THAT(output.warnings[0], testing::HasSubstr(" and 18 right answers, where all others come to "));
  work(peers[1]);
  work(peers[1]);
  EXPECT_TRUE(peers[2].grants.empty());
  EXPECT_EQ(peers[1].grants.at(0).pass >> 56, static_cast<std::uint64_t>(PassKind::evaluate));
  run_exact(8);
}

TEST_P(ComparedBackgroundTest, WhoIsLostIsNotWaitedFor) {
  begin();
  if (GetParam()) say_it(true);
  coordinator->session_closed(2, "gone", now);
  collect();
  run_exact(8);
  EXPECT_EQ(output.evaluations.size(), 4u);
}

INSTANTIATE_TEST_SUITE_P(BeforeTheOthersAndAfter, ComparedBackgroundTest, testing::Bool());

}  // namespace
}  // namespace motley::engine

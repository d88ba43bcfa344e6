// A worker whose device nobody knows gets nothing until that was compared with another.

#include <gtest/gtest.h>

#include <chrono>

#include "machine_fixture.h"

namespace motley::cluster {
namespace {

using std::chrono::seconds;

class ProbesTest : public SoloTest {
 protected:
  ProbesTest() {
    config.verify.probes = true;
    config.solo_after = 0;
    config.min_workers = 2;
    performance.shares = FakePerformance::Shares::equal;
  }
  /// The head's own device is 1.
  void two() {
    start();
    join(1, true);
    join(2, false);
  }
  Action probe_of(SessionId session) {
    const auto probes = of(ActionKind::probe, session);
    EXPECT_FALSE(probes.empty()) << session;
    return probes.empty() ? Action{} : probes.front();
  }
  void answer(SessionId session, bool whole = true) { happen(Probed{session, probe_of(session).lease, whole}); }
  void compared(ProbeVerdict verdict) {
    const Action asked = last(ActionKind::compare_probes);
    happen(ProbesCompared{asked.worker, asked.number, verdict});
  }
  std::size_t grants_of(SessionId session) const { return of(ActionKind::grant, session).size(); }
};

TEST_F(ProbesTest, WhoIsWaitedForHasAShareOfTheFirstStep) {
  two();
  EXPECT_EQ(grants_of(1), 0U) << "two are to begin, and one is not known yet";
  answer(2);
  answer(1);
  compared(ProbeVerdict::alike);
  EXPECT_EQ(grants_of(1), 1U);
  EXPECT_EQ(grants_of(2), 1U);
}

TEST_F(ProbesTest, NothingIsSharedUntilTwoAreAlike) {
  config.min_workers = 1;
  two();
  EXPECT_EQ(grants_of(1), 1U);
  EXPECT_EQ(grants_of(2), 0U) << "all of the first step is the head's";
  answer(2);
  answer(1);
  compared(ProbeVerdict::alike);
  by_lease();
  EXPECT_EQ(grants_of(2), 1U);
  EXPECT_EQ(count(ActionKind::close_session), 0U);
}

TEST_F(ProbesTest, WhoComputesOtherwiseIsExcludedForGood) {
  two();
  answer(1);
  answer(2);
  compared(ProbeVerdict::otherwise);
  EXPECT_EQ(last(ActionKind::close_session).session, 2U);
  EXPECT_EQ(last(ActionKind::close_session).reason.code, ReasonCode::otherwise);
  happen(SessionOpened{3, false});
  happen(WorkerReady{3, 2});
  EXPECT_EQ(last(ActionKind::close_session).session, 3U);
  EXPECT_EQ(grants_of(2) + grants_of(3), 0U);
}

TEST_F(ProbesTest, WithoutADeviceOfTheHeadNobodyKnowsWhoIsWrong) {
  start();
  join(1, false);
  join(2, false);
  answer(1);
  answer(2);
  compared(ProbeVerdict::otherwise);
  EXPECT_EQ(count(ActionKind::close_session), 0U);
  by_lease();
  EXPECT_EQ(grants_of(2), 1U);
}

TEST_F(ProbesTest, ADeviceOfTheHeadThatComesLaterJudgesWhoWasThere) {
  start();
  join(2, false);
  join(1, true);
  answer(1);
  answer(2);
  compared(ProbeVerdict::otherwise);
  EXPECT_EQ(last(ActionKind::close_session).session, 2U);
}

TEST_F(ProbesTest, AProbeThatSaysNothingHoldsNobodyUp) {
  two();
  answer(1, false);
  answer(2);
  EXPECT_EQ(count(ActionKind::compare_probes), 0U);
  by_lease();
  EXPECT_EQ(grants_of(2), 1U);
}

TEST_F(ProbesTest, WhoDoesNotAnswerGetsWorkAfterAMinute) {
  two();
  answer(2);
  now += seconds(61);
  tick();
  EXPECT_EQ(grants_of(2), 1U) << "what is overdue by now";
  answer(1);
  compared(ProbeVerdict::otherwise);
  EXPECT_EQ(last(ActionKind::close_session).session, 2U) << "and is judged all the same";
}

TEST_F(ProbesTest, OfTwoStatesOfTheLossBothAreAskedAgain) {
  two();
  for (int i = 0; i < 3; ++i) {
    const std::size_t asked = count(ActionKind::probe);
    answer(1);
    answer(2);
    EXPECT_EQ(asked, 2U);
    actions.erase(
        std::remove_if(actions.begin(), actions.end(), [](const Action& a) { return a.kind == ActionKind::probe; }),
        actions.end());
    compared(ProbeVerdict::of_other_states);
  }
  EXPECT_EQ(count(ActionKind::probe), 0U) << "it has an end";
  by_lease();
  EXPECT_EQ(grants_of(2), 1U);
}

TEST_F(ProbesTest, ASessionThatIsLostIsAskedAnewWhenItIsBack) {
  two();
  answer(1);
  happen(SessionEnded{2, false});
  happen(SessionOpened{3, false});
  happen(WorkerReady{3, 2});
  happen(WorkerSynced{3, machine->version()});
  answer(3);
  compared(ProbeVerdict::otherwise);
  EXPECT_EQ(last(ActionKind::close_session).session, 3U);
}

TEST_F(ProbesTest, AnAnswerOfAnotherIsNone) {
  two();
  happen(Probed{2, probe_of(1).lease, true});
  happen(ProbesCompared{2, 1, ProbeVerdict::otherwise});
  EXPECT_EQ(count(ActionKind::close_session), 0U);
  EXPECT_EQ(count(ActionKind::compare_probes), 0U);
}

}  // namespace
}  // namespace motley::cluster

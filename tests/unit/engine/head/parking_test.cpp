// Workers are measured beside the run; one that would hold up the others waits outside until it would not.

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <limits>

#include "fixture.h"

namespace motley::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ParkingTest : public CoordinatorTest {
 protected:
  ParkingTest() {
    options.global_batch = 32;
    options.train_samples = 96;
    options.grain = 4;
    options.steps = 40;
  }

  /// "far", whom the weights take so long to reach, while `fast` is there.
  Peer& join_from_afar(Peer& fast, double seconds_per_sample, Duration weights) {
    Peer& far = open(2, "far");
    far.seconds_per_sample = seconds_per_sample;
    ready(far);
    pass_time(weights, {&fast, &far});
    synced(far);
    return far;
  }

  /// A step by `peer` alone, which must have been granted all of it.
  void step_of(Peer& peer) {
    ASSERT_EQ(peer.grants.size(), 1u);
    ASSERT_EQ(peer.grants[0].count, options.global_batch);
    work(peer);
  }
};

TEST_F(ParkingTest, ANewcomerIsMeasuredBeforeItTakesPart) {
  make();
  constexpr double kPace = 1.0 / 32;  // a step of the first takes 1 s, which is believed
  Peer& first = join(1, {}, false, kPace);
  Peer& second = open(2);
  second.seconds_per_sample = kPace;
  ready(second);
  hold_calibrations = true;
  synced(second);
  ASSERT_EQ(second.calibrations.size(), 1u);
  const wire::Grant trial = second.calibrations[0];
  EXPECT_EQ(trial.pass >> 56, static_cast<std::uint64_t>(PassKind::calibrate));
  EXPECT_EQ(trial.version, 0u);
  EXPECT_EQ(trial.count, 4u);
  step_of(first);
  EXPECT_TRUE(second.grants.empty()) << "not before it is measured";
  hold_calibrations = false;
  collect();
  EXPECT_THAT(first.weights, testing::SizeIs(2));
  EXPECT_EQ(second.weights.count(1), 1u) << "a step went by meanwhile";
  work(first);
  EXPECT_EQ(second.grants.size(), 1u);
  EXPECT_EQ(second.grants[0].count, 16u);
}

TEST_F(ParkingTest, WhoWouldHoldUpTheOthersWaitsOutside) {
  make();
  Peer& fast = join(1, "fast", false, 0.001);
  step_of(fast);
  Peer& slow = join(2, "slow", false, 0.5);
  EXPECT_THAT(events_of("slow"), ElementsAre(Membership::joined, Membership::parked));
  EXPECT_THAT(output.changes.back().reason, HasSubstr("and takes 32 ms without"));
  for (int i = 0; i < 5; ++i) step_of(fast);
  EXPECT_TRUE(slow.grants.empty());
  EXPECT_EQ(slow.weights.size(), 1u) << "what it will not compute with is not sent";
}

TEST_F(ParkingTest, IsMeasuredAgainAndTakenInWhenItPays) {
  options.steps = 1000;
  make();
  Peer& fast = join(1, "fast", false, 0.001);
  Peer& slow = join(2, "slow", false, 0.5);
  slow.seconds_per_sample = 0.001;
  for (int step = 0; step < 500 && slow.grants.empty(); ++step) {
    pass_time(ms(32), {&fast, &slow});
    if (slow.grants.empty()) work(fast);
  }
  EXPECT_THAT(events_of("slow"), ElementsAre(Membership::joined, Membership::parked, Membership::readmitted));
  ASSERT_EQ(slow.grants.size(), 1u);
  EXPECT_GE(slow.grants[0].count, 8u);
  run_exact(1000);
}

TEST_F(ParkingTest, ThePlanIsToldWhenOthersTakePart) {
  make();
  join(1, "fast", false, 0.001);
  const auto step = [&] {
    const Time opened = now;
    for (auto& [session, peer] : peers) {
      if (peer.grants.empty()) continue;
      now = std::max<Time>(now, opened + ms(1) * static_cast<int>(peer.grants[0].count));
      work(peer);
    }
  };
  for (int i = 0; i < 3; ++i) step();
  ASSERT_EQ(output.plans.size(), 1u);
  EXPECT_NEAR(output.plans[0].step.samples_per_second, 1000, 50);
  join(2, "other", false, 0.001);
  for (int i = 0; i < 3; ++i) step();
  ASSERT_EQ(output.plans.size(), 2u);
  const Planned& both = output.plans[1];
  EXPECT_NEAR(both.step.samples_per_second, 2000, 100);
  ASSERT_EQ(both.workers.size(), 2u);
  EXPECT_EQ(both.workers[0].name, "fast");
  EXPECT_EQ(both.workers[0].samples, 16u);
  EXPECT_NEAR(both.workers[1].alone_samples_per_second, 1000, 50);
  EXPECT_THAT(both.advice.recommendation, HasSubstr("use fast and other"));
  const std::optional<Planned> larger = coordinator->forecast(64);
  ASSERT_TRUE(larger);
  EXPECT_EQ(larger->workers[0].samples, 32u);
}

TEST_F(ParkingTest, AMemberThatBecameSlowIsParked) {
  make();
  Peer& fast = join(1, "fast", false, 0.001);
  Peer& other = join(2, "other", false, 0.001);
  work(fast);
  const auto both = [&] {
    const Time opened = now;
    for (Peer* peer : {&fast, &other}) {
      if (peer->grants.empty()) continue;
      const Time done = opened + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(
                                     peer->seconds_per_sample * static_cast<double>(peer->grants[0].count)));
      if (done > now) pass_time(done - now, {&fast, &other});
      work(*peer);
    }
  };
  for (int i = 0; i < 4; ++i) both();
  ASSERT_EQ(other.grants.size(), 1u);
  other.seconds_per_sample = 0.05;
  for (int i = 0; i < 8; ++i) both();
  EXPECT_THAT(events_of("other"), ElementsAre(Membership::joined, Membership::parked));
  EXPECT_TRUE(other.grants.empty());
}

TEST_F(ParkingTest, WhomTheWeightsReachTooSlowlyDoesNotHoldUpASinglePass) {
  options.steps = 1000;
  make();
  Peer& fast = join(1, "fast", false, 0.001);
  step_of(fast);
  Peer& far = join_from_afar(fast, 0.001, ms(1400));
  EXPECT_THAT(events_of("far"), ElementsAre(Membership::joined, Membership::parked));
  for (int i = 0; i < 5; ++i) step_of(fast);
  EXPECT_TRUE(far.grants.empty());
  // The link may have been busy with something else: it is tried in the end.
  for (int step = 0; step < 900 && far.grants.empty(); ++step) {
    pass_time(ms(1000), {&fast, &far});
    if (far.grants.empty()) work(fast);
  }
  EXPECT_THAT(events_of("far"), ElementsAre(Membership::joined, Membership::parked, Membership::readmitted));
}

// A pass moves a quarter of what a first version takes.
TEST_F(ParkingTest, WithFewerBitsASlowLinkMayDo) {
  for (const auto codec : {wire::CodecId::fp32, wire::CodecId::int8}) {
    options.gradients = options.weights = codec;
    peers.clear();
    output = {};
    make();
    Peer& fast = join(1, "fast", false, 0.02);
    step_of(fast);
    join_from_afar(fast, 0.02, ms(700));
    if (codec == wire::CodecId::fp32) {
      EXPECT_THAT(events_of("far"), ElementsAre(Membership::joined, Membership::parked));
    } else {
      EXPECT_THAT(events_of("far"), ElementsAre(Membership::joined));
    }
  }
}

TEST_F(ParkingTest, ALinkThatBecameFasterIsNoticed) {
  options.steps = 5000;
  make();
  Peer& fast = join(1, "fast", false, 0.001);
  step_of(fast);
  Peer& far = join_from_afar(fast, 0.001, ms(1400));
  ASSERT_THAT(events_of("far"), ElementsAre(Membership::joined, Membership::parked));
  std::size_t known = far.weights.size();
  const auto seconds_until_sent = [&] {
    int tenths = 0;
    for (; tenths < 1200 && far.weights.size() == known; ++tenths) {
      pass_time(ms(100), {&fast, &far});
      if (far.weights.size() == known) step_of(fast);
    }
    known = far.weights.size();
    return tenths / 10;
  };
  EXPECT_LE(seconds_until_sent(), 7);
  const std::uint64_t sent = coordinator->server().version();
  for (int i = 0; i < 10; ++i) {
    step_of(fast);
    pass_time(ms(200), {&fast, &far});
  }
  synced(far, sent);
  EXPECT_GE(seconds_until_sent(), 90) << "a version is no small thing for such a link";
  synced(far);
  for (int step = 0; step < 12 && far.grants.empty(); ++step) {
    pass_time(ms(1000), {&fast, &far});
    if (far.grants.empty()) work(fast);
  }
  EXPECT_THAT(events_of("far"), ElementsAre(Membership::joined, Membership::parked, Membership::readmitted));
}

class LateTest : public ParkingTest {
 protected:
  LateTest() { options.steps = 200; }

  void start() {
    make();
    fast = &join(1, "fast", false, 0.001);
    other = &join(2, "other", false, 0.001);
    work(*fast);
    for (int i = 0; i < 4; ++i) {
      now += ms(16);
      work(*fast);
      work(*other);
    }
  }

  /// A pass to which `other` contributes nothing. It says so, unless it is mute, in `heartbeat`.
  void pass_without_other(const std::function<wire::Heartbeat(const wire::Grant&)>& heartbeat) {
    const std::uint64_t version = coordinator->server().version();
    for (int waited = 0; waited < 100 && coordinator->server().version() == version; ++waited) {
      while (!fast->grants.empty() && coordinator->server().version() == version) work(*fast);
      if (coordinator->server().version() != version) return;
      if (heartbeat && !other->grants.empty()) say(*other, heartbeat(other->grants.back()));
      pass_time(ms(100), {fast});
    }
    ASSERT_GT(coordinator->server().version(), version) << "others compute it when it is overdue";
  }

  Peer* fast = nullptr;
  Peer* other = nullptr;
};

TEST_F(LateTest, WhoIsNeverDoneIsParked) {
  start();
  ASSERT_EQ(other->grants.size(), 1u);
  for (int i = 0; i < 8; ++i) pass_without_other([](const wire::Grant& on) { return wire::Heartbeat{1, 0, on.lease}; });
  EXPECT_EQ(other->grants.size(), 2u) << "the first might be a hiccup";
  EXPECT_THAT(events_of("other"), ElementsAre(Membership::joined, Membership::parked));
}

TEST_F(LateTest, WhoWaitsForWeightsIsLeftOutForItsLinkAndNotForItsSpeed) {
  start();
  const int most = 12;
  for (int i = 0; i < most && events_of("other").size() == 1; ++i)
    pass_without_other([](const wire::Grant&) { return wire::Heartbeat{1, 0, 0}; });
  ASSERT_THAT(events_of("other"), ElementsAre(Membership::joined, Membership::parked));
  // Beside the run it is as fast as ever, which does not bring it back at once.
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(fast->grants.size(), 1u);
    pass_time(ms(32), {fast, other});
    step_of(*fast);
  }
  EXPECT_EQ(events_of("other").size(), 2u);
}

TEST_F(LateTest, WhoIsNotHeardOfSaysNothingAboutItsSpeed) {
  options.timeouts.silence = std::chrono::hours(1);
  start();
  for (int i = 0; i < 4; ++i) pass_without_other({});
  EXPECT_THAT(events_of("other"), ElementsAre(Membership::joined));
}

TEST_F(ParkingTest, AParkedWorkerTakesOverWhenNobodyElseIsLeft) {
  make();
  Peer& fast = join(1, "fast", false, 0.001);
  step_of(fast);
  Peer& slow = join(2, "slow", false, 0.5);
  coordinator->session_closed(1, "gone", now);
  output.closed[1] = {};
  collect();
  EXPECT_THAT(events_of("slow"), ElementsAre(Membership::joined, Membership::parked, Membership::readmitted));
  ASSERT_EQ(slow.grants.size(), 1u);
  EXPECT_EQ(slow.grants[0].version, 1u);
  EXPECT_EQ(slow.weights.count(1), 1u);
  run_exact(40);
}

TEST_F(ParkingTest, ADeviceThatCannotComputeIsStruckOut) {
  make();
  join(1);
  Peer& broken = open(2, "broken");
  ready(broken);
  hold_calibrations = true;
  synced(broken);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(broken.calibrations.size(), 1u);
    const wire::Grant trial = broken.calibrations[0];
    broken.calibrations.clear();
    say(broken, wire::Failed{trial.pass, trial.lease, "out of memory"});
  }
  EXPECT_EQ(output.closed.at(2).code, "excluded");
  EXPECT_THAT(output.warnings[0], HasSubstr("out of memory"));
}

TEST_F(ParkingTest, AResultThatNobodyAskedForIsDropped) {
  make();
  Peer& peer = join(1);
  wire::Finish stray;
  stray.pass = std::uint64_t{3} << 56;
  stray.lease = 12345;
  stray.count = 1;
  say(peer, stray);
  run_exact(40);
}

TEST_F(ParkingTest, WhatAnEarlierRunLearnedIsOnlyChecked) {
  options.min_workers = 9;
  hold_calibrations = true;
  make();
  const auto calibrations = [&](SessionId session, double seconds_per_sample, double known = 0.01) {
    Peer& peer = open(session, "w" + std::to_string(session));
    peer.seconds_per_sample = seconds_per_sample;
    ready(peer, known);
    synced(peer);
    std::size_t count = 0;
    for (; !peer.calibrations.empty(); ++count) {
      const wire::Grant trial = peer.calibrations[0];
      peer.calibrations.clear();
      finish(peer, trial);
    }
    return count;
  };
  EXPECT_EQ(calibrations(1, 0.011), 2u) << "one that warms up and one that agrees";
  EXPECT_EQ(calibrations(2, 0.03), 4u) << "the device is slower than it was";
  SessionId session = 3;
  for (const double absurd : {-1.0, 1e-300, 1e300, std::numeric_limits<double>::infinity(), std::nan("")})
    EXPECT_EQ(calibrations(session++, 0.01, absurd), 4u) << absurd;
}

TEST_F(ParkingTest, FixedSharesNeedNoMeasuring) {
  options.shares = {1, 3};
  options.min_workers = 2;
  hold_calibrations = true;
  make();
  join(1);
  join(2);
  EXPECT_TRUE(peers[1].calibrations.empty());
  EXPECT_EQ(peers[1].grants.at(0).count, 8u);
}

}  // namespace
}  // namespace motley::engine

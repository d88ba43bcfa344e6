#include "fleet/parking.h"

#include <gtest/gtest.h>

#include <vector>

namespace motley::fleet {
namespace {

struct FixedSpeeds : Speeds {
  std::uint64_t to_calibrate = 0;
  Verdict verdict{}, comparison{};

  std::uint64_t calibration(WorkerId) const override { return to_calibrate; }
  std::uint64_t trial(WorkerId) const override { return 4; }
  Verdict judge(std::uint64_t, std::span<const WorkerId>, WorkerId) override { return verdict; }
  Verdict compare(std::uint64_t, WorkerId) override { return comparison; }
  Verdict resolve(std::uint64_t) override { return comparison; }
};

struct NotedAttendance : Attendance {
  std::uint64_t calibrated = 0;
  std::vector<Cause::Kind> parked, taken_in;

  void calibrate(Member&, std::uint64_t samples) override { calibrated += samples; }
  void take_in(Member& member, const Cause& cause) override {
    member.state.enter(MemberState::member);
    taken_in.push_back(cause.kind);
  }
  void park(Member&, const Cause& cause, bool told) override {
    if (!told) parked.push_back(cause.kind);
  }
  bool try_link(Member&) override { return false; }
};

class ParkingTest : public testing::Test {
 protected:
  Member& join(SessionId session, bool local = false) {
    Member& member = roster.open(session, local, {});
    member.worker = session;
    member.state.enter(MemberState::syncing);
    return member;
  }
  void take_part(SessionId session, bool local = false) { join(session, local).state.enter(MemberState::member); }

  Roster roster;
  FixedSpeeds speeds;
  NotedAttendance attendance;
  Parking parking{roster, speeds, attendance, std::chrono::seconds(5)};
};

TEST_F(ParkingTest, WhoIsNotMeasuredYetIsMeasuredBesideTheOthers) {
  take_part(1);
  speeds.to_calibrate = 7;
  Member& member = join(2);
  parking.consider(member, 100, false, {});
  EXPECT_EQ(member.state.state(), MemberState::calibrating);
  EXPECT_EQ(attendance.calibrated, 7u);
}

TEST_F(ParkingTest, WhoIsAloneIsTakenInUnmeasured) {
  speeds.to_calibrate = 7;
  Member& member = join(1);
  parking.consider(member, 100, true, {});
  EXPECT_EQ(member.state.state(), MemberState::member);
}

TEST_F(ParkingTest, WhoDoesNotPayIsParkedAndToldOnce) {
  take_part(1);
  speeds.verdict = {.pays = false, .with = Duration(2), .without = Duration(1)};
  Member& member = join(2);
  parking.consider(member, 100, false, {});
  parking.consider(member, 100, false, Time(1));
  EXPECT_EQ(member.state.state(), MemberState::parked);
  EXPECT_EQ(attendance.parked, std::vector{Cause::Kind::does_not_pay});
}

TEST_F(ParkingTest, OneDeviceOfTheHeadIsTriedAloneAndTheOthersComeBack) {
  take_part(1, true);
  take_part(2);
  speeds.comparison = {.pays = false};  // it never was alone
  parking.park_others(100, Duration(10), {});
  Member& other = *roster.find(2);
  EXPECT_EQ(other.state.state(), MemberState::parked);
  EXPECT_TRUE(other.parked.compared);
  speeds.comparison = {};
  parking.watch(other, 100, 1, other.parked.trial_due);
  EXPECT_EQ(other.state.state(), MemberState::member);
  EXPECT_EQ(attendance.taken_in, std::vector{Cause::Kind::compared});
}

TEST_F(ParkingTest, WhereNobodyElseIsLeftTheParkedTakePart) {
  speeds.verdict.pays = false;
  take_part(1);
  parking.consider(join(2), 100, false, {});
  roster.close(1);
  parking.take_in_parked();
  EXPECT_EQ(attendance.taken_in, std::vector{Cause::Kind::nobody_else});
}

}  // namespace
}  // namespace motley::fleet

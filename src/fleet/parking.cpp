#include "fleet/parking.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace motley::fleet {
namespace {

// Times in a row without a share until a worker is parked: shares may change while the models are young.
constexpr std::uint32_t kLeftOutMax = 3;
// So many passes' time for steps alone to compare with.
constexpr int kComparedPasses = 8;
constexpr int kLinkTriedAgain = 2;  // times measure_again, at least
constexpr int kLinkRests = 50;      // times as long as it was busy with what was sent
// Who had a share in vain rests for so many passes, twice as many after each time. A try costs a part of some passes.
constexpr int kInVainRests = 100;
constexpr std::uint32_t kInVainMax = 5;

Cause does_not_pay(WorkerId worker, const Verdict& verdict) {
  return {.kind = Cause::Kind::does_not_pay, .worker = worker, .verdict = verdict};
}

}  // namespace

void Parking::consider(Member& member, std::uint64_t samples, bool alone, Time now) {
  // Who is alone has nobody to share with: its steps are the measurement.
  if (const std::uint64_t trial = speeds_.calibration(member.worker); trial > 0 && !alone) {
    if (member.state == MemberState::syncing) member.state.enter(MemberState::calibrating);
    return attendance_.calibrate(member, trial);
  }
  const Verdict verdict = judge(member, samples);
  if (verdict.pays && (verdict.faster || now >= member.share.due)) {
    attendance_.take_in(member, {.kind = Cause::Kind::pays, .worker = member.worker});
  } else {
    park(member, does_not_pay(member.worker, verdict), now);
  }
}

void Parking::watch(Member& member, std::uint64_t samples, WorkerId alone, Time now) {
  if (member.parked.compared) return end_comparison(samples, alone, now);
  try_link(member, now);
  attendance_.calibrate(member, speeds_.trial(member.worker));
}

// Calibrations cannot tell that a link has become faster.
void Parking::try_link(Member& member, Time now) {
  if (member.local || now < member.parked.link_due || !attendance_.try_link(member)) return;
  member.parked.link_tried = now;
  member.parked.link_due = now + kLinkTriedAgain * measure_again_;
}

void Parking::link_answered(Member& member, Time now) {
  if (member.parked.link_tried == Time{}) return;
  member.parked.link_due = std::max(member.parked.link_due, now + kLinkRests * (now - member.parked.link_tried));
  member.parked.link_tried = {};
}

Verdict Parking::judge(const Member& member, std::uint64_t samples) {
  others_.clear();
  for (const Member& other : roster_.all()) {
    if (other.state == MemberState::member && other.session != member.session) others_.push_back(other.worker);
  }
  if (others_.empty()) return {};
  return speeds_.judge(samples, others_, member.worker);
}

void Parking::park(Member& member, const Cause& cause, Time now) {
  const bool told = member.state == MemberState::parked;
  member.state.enter(MemberState::parked);
  member.parked.trial_due = now + measure_again_;
  if (!told) member.parked.link_due = member.parked.link_tried = {};
  attendance_.park(member, cause, told);
}

void Parking::park_idle(std::uint64_t samples, Time now) {
  for (Member& member : roster_.all()) {
    if (member.state != MemberState::member || member.share.left_out < kLeftOutMax) continue;
    const Verdict verdict = judge(member, samples);
    if (!verdict.pays) park(member, does_not_pay(member.worker, verdict), now);
  }
}

// Shares of help and of harm look alike in the models: the wire's work on the head slows its own device down, and
// sharing makes more of it. So where one device of the head could do without the others, what was measured decides.
void Parking::park_others(std::uint64_t samples, Duration pass, Time now) {
  const Member* only = nullptr;
  std::size_t sharing = 0;
  for (const Member& member : roster_.all()) {
    if (member.state == MemberState::yielding) return;
    if (member.state != MemberState::member) continue;
    ++sharing;
    if (!member.local) continue;
    if (only != nullptr) return;
    only = &member;
  }
  if (only == nullptr || sharing < 2 || only->shown.failed_alone) return;
  const Verdict verdict = speeds_.compare(samples, only->worker);
  if (verdict.pays) return;
  if (verdict.without > Duration{}) return park_least(only->worker, verdict, now);
  const WorkerId alone = only->worker;
  for (Member& member : roster_.all()) {
    if (member.state != MemberState::member || member.worker == alone) continue;
    park(member, {.kind = Cause::Kind::compared, .worker = alone}, now);
    member.parked.compared = true;
    member.parked.trial_due = now + kComparedPasses * pass;
  }
}

// One at a time: some of the others may help where all of them do not.
void Parking::park_least(WorkerId alone, const Verdict& verdict, Time now) {
  Member* least = nullptr;
  for (Member& member : roster_.all()) {
    if (member.state != MemberState::member || member.worker == alone) continue;
    if (least == nullptr || member.share.samples < least->share.samples) least = &member;
  }
  park(*least, does_not_pay(least->worker, verdict), now);
  rest(*least, verdict, now);
}

void Parking::rest(Member& member, const Verdict& verdict, Time now) {
  constexpr Duration kStepMax = std::chrono::hours(1);
  const Duration passes = kInVainRests * std::min(kStepMax, verdict.without);
  member.share.in_vain = std::min(kInVainMax, member.share.in_vain + 1);
  member.share.due = now + (1 << member.share.in_vain) * std::max(measure_again_, passes);
}

// Of several the one with the smallest share stays out: some of the others may help where all of them do not.
void Parking::end_comparison(std::uint64_t samples, WorkerId alone, Time now) {
  const Verdict verdict = alone == 0 ? Verdict{} : speeds_.resolve(samples);
  Member* least = nullptr;
  for (Member& member : roster_.all())
    if (member.parked.compared && (least == nullptr || member.share.samples < least->share.samples)) least = &member;
  for (Member& member : roster_.all()) {
    if (!std::exchange(member.parked.compared, false)) continue;
    if (verdict.pays || &member != least) {
      attendance_.take_in(member, {.kind = Cause::Kind::compared, .worker = alone});
      continue;
    }
    park(member, does_not_pay(member.worker, verdict), now);
    rest(member, verdict, now);
    attendance_.park(member, does_not_pay(member.worker, verdict), false);  // until now it was said to be compared
  }
}

void Parking::take_in_parked() {
  for (Member& member : roster_.all())
    if (member.state == MemberState::parked)
      attendance_.take_in(member, {.kind = Cause::Kind::nobody_else, .worker = member.worker});
}

}  // namespace motley::fleet

// Who takes part: measured beside the run, taken in where it shortens a step, parked where it would hold up the others.

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "cluster/coordinator_machine.h"

namespace motley::cluster {
namespace {

// Train passes in a row without a share until a worker is parked: shares may change while the models are young.
constexpr std::uint32_t kLeftOutMax = 3;
// So many passes' time for steps alone to compare with.
constexpr int kComparedPasses = 8;
constexpr int kLinkTriedAgain = 2;  // times measure_again, at least
constexpr int kLinkRests = 50;      // times as long as it was busy with a version
// Who had a share in vain rests for so many passes, twice as many after each time. A try costs a part of some passes.
constexpr int kInVainRests = 100;
constexpr std::uint32_t kInVainMax = 5;

Reason does_not_pay(WorkerId worker, const Pace::Verdict& verdict) {
  return {ReasonCode::does_not_pay, worker, whole_milliseconds(verdict.with), whole_milliseconds(verdict.without)};
}

}  // namespace

void CoordinatorMachine::consider(Member& member, Time now) {
  // Who is alone has nobody to share with: its steps are the measurement.
  const bool alone = members_.all().size() == 1 && config_.min_workers <= 1;
  if (const std::uint64_t samples = pace_.calibration(member.worker); samples > 0 && !alone) {
    if (member.state == MemberState::syncing) member.state.enter(MemberState::calibrating);
    return calibrate(member, samples);
  }
  const Pace::Verdict verdict = judge(member);
  if (verdict.pays && (verdict.faster || now >= member.help_due)) {
    take_in(member, {.code = ReasonCode::pays, .worker = member.worker});
  } else {
    park(member, does_not_pay(member.worker, verdict), now);
  }
}

// Calibrations cannot tell that a link has become faster.
void CoordinatorMachine::try_link(Member& member, Time now) {
  if (member.local || now < member.link_due || version_ <= member.holds + 1) return;  // it answers only if it jumped
  const std::uint64_t behind = std::exchange(member.holds, version_);
  member.link_tried = now;
  member.link_due = now + kLinkTriedAgain * config_.measure_again;
  act(ActionKind::send_weights, {ReasonCode::behind, member.worker, behind, version_}).session = member.session;
}

void CoordinatorMachine::link_answered(Member& member, Time now) {
  if (member.link_tried == Time{}) return;
  member.link_due = std::max(member.link_due, now + kLinkRests * (now - member.link_tried));
  member.link_tried = {};
}

Pace::Verdict CoordinatorMachine::judge(const Member& member) {
  split_workers_.clear();
  for (const Member& other : members_.all())
    if (other.state == MemberState::member && other.session != member.session) split_workers_.push_back(other.worker);
  if (split_workers_.empty()) return {};
  return pace_.judge(batches_.batch(version_), split_workers_, member.worker);
}

void CoordinatorMachine::calibrate(Member& member, std::uint64_t samples) {
  if (held_ && member.local) {  // what the body looks at is what it computes with
    member.waits_for_release = true;
    return;
  }
  member.trial = leases_.next_id();
  Action& action = act(ActionKind::calibrate);
  action.session = member.session;
  action.worker = member.worker;
  action.lease = member.trial;
  action.range = {0, std::min(samples, config_.train_samples)};
  action.version = member.holds;
}

void CoordinatorMachine::on(const Calibrated& event, Time now) {
  Member* member = members_.find(event.session);
  if (member == nullptr || event.lease == 0 || member->trial != event.lease) return;
  member->trial = 0;
  if (event.failed) {
    strike(member->worker);
    member = members_.find(event.session);  // the third strike closes the session
    if (member == nullptr) return;
  }
  if (member->state == MemberState::calibrating || member->state == MemberState::parked) consider(*member, now);
}

void CoordinatorMachine::take_in(Member& member, Reason reason) {
  const bool parked = member.state == MemberState::parked;
  if (aside_ && aside_->session == member.session) drop_aside(false);
  member.state.enter(MemberState::member);
  member.left_out = 0;
  member.compared = false;
  member.trial = 0;
  if (stretch_) {  // the version moves on before it can take part: its weights come when the stretch has ended
    if (parked) act(ActionKind::take_in, reason).session = member.session;
    return;
  }
  member.streams = true;
  if (member.holds < version_) {
    // Steps went by meanwhile. A whole version costs what every member gets in every step, so it goes at once.
    Action& send = act(ActionKind::send_weights, {ReasonCode::behind, member.worker, member.holds, version_});
    send.session = member.session;
    send.urgent = true;
  }
  const Reason joined{.code = ReasonCode::joined, .worker = member.worker};
  if (applied_ > 0) act(ActionKind::send_next, joined).session = member.session;
  if (pass_) act(ActionKind::open_pass, joined).session = member.session;
  if (parked) act(ActionKind::take_in, reason).session = member.session;
}

void CoordinatorMachine::park(Member& member, Reason reason, Time now) {
  const bool told = member.state == MemberState::parked;
  if (member.streams) member.holds = version_;
  member.state.enter(MemberState::parked);
  member.streams = false;
  member.trial_due = now + config_.measure_again;
  if (told) return;
  member.link_due = member.link_tried = {};
  act(ActionKind::park, reason).session = member.session;
}

void CoordinatorMachine::park_idle(Time now) {
  for (Member& member : members_.all()) {
    if (member.state != MemberState::member || member.left_out < kLeftOutMax) continue;
    const Pace::Verdict verdict = judge(member);
    if (!verdict.pays) park(member, does_not_pay(member.worker, verdict), now);
  }
}

// Shares of help and of harm look alike in the models: the wire's work on the head slows its own device down, and
// sharing makes more of it. So where one device of the head could do without the others, what was measured decides.
void CoordinatorMachine::park_others(Duration pass, Time now) {
  if (config_.solo_after == 0 || train_passes_ < config_.solo_after) return;
  const Member* only = nullptr;
  std::size_t sharing = 0;
  for (const Member& member : members_.all()) {
    if (member.state == MemberState::yielding) return;
    if (member.state != MemberState::member) continue;
    ++sharing;
    if (!member.local) continue;
    if (only != nullptr) return;
    only = &member;
  }
  if (only == nullptr || sharing < 2 || only->failed_alone) return;
  const Pace::Verdict verdict = pace_.compare(batches_.batch(version_), only->worker);
  if (verdict.pays) return;
  if (verdict.without > Duration{}) return park_least(only->worker, verdict, now);
  const WorkerId alone = only->worker;
  for (Member& member : members_.all()) {
    if (member.state != MemberState::member || member.worker == alone) continue;
    park(member, {.code = ReasonCode::compared, .worker = alone}, now);
    member.compared = true;
    member.trial_due = now + kComparedPasses * pass;
  }
}

// One at a time: some of the others may help where all of them do not.
void CoordinatorMachine::park_least(WorkerId alone, const Pace::Verdict& verdict, Time now) {
  Member* least = nullptr;
  for (Member& member : members_.all()) {
    if (member.state != MemberState::member || member.worker == alone) continue;
    if (least == nullptr || member.share < least->share) least = &member;
  }
  park(*least, does_not_pay(least->worker, verdict), now);
  rest(*least, verdict, now);
}

void CoordinatorMachine::rest(Member& member, const Pace::Verdict& verdict, Time now) {
  constexpr Duration kStepMax = std::chrono::hours(1);
  const Duration passes = kInVainRests * std::min(kStepMax, verdict.without);
  member.in_vain = std::min(kInVainMax, member.in_vain + 1);
  member.help_due = now + (1 << member.in_vain) * std::max(config_.measure_again, passes);
}

// Of several the one with the smallest share stays out: some of the others may help where all of them do not.
void CoordinatorMachine::end_comparison(Time now) {
  const WorkerId alone = stretch_ ? stretch_->worker : 0;
  const Pace::Verdict verdict = alone == 0 ? Pace::Verdict{} : pace_.resolve(batches_.batch(version_), alone);
  Member* least = nullptr;
  for (Member& member : members_.all())
    if (member.compared && (least == nullptr || member.share < least->share)) least = &member;
  for (Member& member : members_.all()) {
    if (!std::exchange(member.compared, false)) continue;
    if (verdict.pays || &member != least) {
      take_in(member, {.code = ReasonCode::compared, .worker = alone});
      continue;
    }
    park(member, does_not_pay(member.worker, verdict), now);
    rest(member, verdict, now);
    act(ActionKind::park, does_not_pay(member.worker, verdict)).session = member.session;
  }
}

void CoordinatorMachine::take_in_parked() {
  for (Member& member : members_.all())
    if (member.state == MemberState::parked)
      take_in(member, {.code = ReasonCode::nobody_else, .worker = member.worker});
}

}  // namespace motley::cluster

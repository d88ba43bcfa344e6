#include "cluster/attendance.h"

#include <algorithm>
#include <utility>

namespace motley::cluster {

using fleet::Member, fleet::MemberState, modes::Action, modes::ActionKind, modes::Reason, modes::ReasonCode;

namespace {

Reason reason_of(const fleet::Cause& cause) {
  using Kind = fleet::Cause::Kind;
  switch (cause.kind) {
    case Kind::pays:
      return {.code = ReasonCode::pays, .worker = cause.worker};
    case Kind::does_not_pay:
      return {ReasonCode::does_not_pay, cause.worker, modes::whole_milliseconds(cause.verdict.with),
              modes::whole_milliseconds(cause.verdict.without)};
    case Kind::compared:
      return {.code = ReasonCode::compared, .worker = cause.worker};
    case Kind::nobody_else:
      return {.code = ReasonCode::nobody_else, .worker = cause.worker};
  }
  return {};
}

}  // namespace

void Attendance::calibrate(Member& member, std::uint64_t samples) {
  modes::Run& run = rooms_.run;
  if (rooms_.pause.paused() && member.local) {  // what the body looks at is what it computes with
    member.waits_for_release = true;
    return;
  }
  member.trial = run.next_lease();
  Action& action = run.act(ActionKind::calibrate);
  action.session = member.session;
  action.worker = member.worker;
  action.lease = member.trial;
  action.range = {0, std::min(samples, run.config.train_samples)};
  action.version = member.holds;
  action.pass = {.kind = PassKind::calibrate, .number = member.holds};
}

void Attendance::take_in(Member& member, const fleet::Cause& cause) { take_in(member, reason_of(cause)); }

void Attendance::take_in(Member& member, Reason reason) {
  modes::Run& run = rooms_.run;
  const bool parked = member.state == MemberState::parked;
  rooms_.evaluation.session_lost(member.session);
  member.state.enter(MemberState::member);
  member.share.left_out = 0;
  member.parked.compared = false;
  member.trial = 0;
  if (!rooms_.local.closed()) {  // the version moves on before it can take part: its weights come when that has ended
    if (parked) run.act(ActionKind::take_in, reason).session = member.session;
    return;
  }
  member.streams = true;
  if (member.holds < run.version) {
    // Steps went by meanwhile. A whole version costs what every member gets in every step, so it goes at once.
    Action& send = run.act(ActionKind::send_weights, {ReasonCode::behind, member.worker, member.holds, run.version});
    send.session = member.session;
    send.urgent = true;
  }
  const Reason joined{.code = ReasonCode::joined, .worker = member.worker};
  rooms_.exact.joined(member, joined);
  rooms_.rounds.joined(member, joined);
  if (parked) run.act(ActionKind::take_in, reason).session = member.session;
}

void Attendance::park(Member& member, const fleet::Cause& cause, bool told) {
  if (member.streams) member.holds = rooms_.run.version;
  member.streams = false;
  if (!told) rooms_.run.act(ActionKind::park, reason_of(cause)).session = member.session;
}

bool Attendance::try_link(Member& member) {
  modes::Run& run = rooms_.run;
  if (run.version <= member.holds + 1) return false;  // it answers only if it jumped
  const std::uint64_t behind = std::exchange(member.holds, run.version);
  run.act(ActionKind::send_weights, {ReasonCode::behind, member.worker, behind, run.version}).session = member.session;
  return true;
}

}  // namespace motley::cluster

#include "modes/exact/evaluation.h"

#include <utility>

namespace motley::modes {

using fleet::Member, fleet::MemberState;

namespace {

// After the first. Where an evaluation takes a twentieth of an epoch, it costs 0.3 % of the time.
constexpr std::uint64_t kComparedOneIn = 16;

}  // namespace

// A finished run that is resumed is evaluated once more, so that it ends as any other.
// Where steps depend on evaluations, one may be missing that was due when the run ended.
void Evaluation::started(bool owed) {
  const bool missing =
      run_.version >= run_.steps() || (!run_.config.evaluates_in_background && run_.version > 0 && due());
  pending_ = run_.config.test_samples > 0 && (missing || owed);
}

void Evaluation::go_to_background(Time now) {
  if (!run_.config.evaluates_in_background || run_.config.pauses != Pauses::never || background_ || check_ ||
      run_.version >= run_.steps())
    return;  // the last evaluation is everybody's
  for (Member& member : run_.roster.all()) {
    if (member.state != MemberState::parked || member.trial != 0 || member.shown.failed_background ||
        member.shown.unproven)
      continue;
    background_ = BackgroundEvaluation{
        .session = member.session,
        .worker = member.worker,
        .lease = run_.next_lease(),
        .version = run_.version,
        .epoch = run_.batches.range(run_.version - 1).epoch,
        .deadline = now + run_.performance.allowance(PassKind::evaluate, member.worker, run_.config.test_samples),
        .compared = looked_at(member)};
    member.holds = run_.version;
    const Reason reason{.code = ReasonCode::background, .worker = member.worker};
    run_.act(ActionKind::send_weights, reason).session = member.session;
    Action& action = run_.act(ActionKind::evaluate_in_background, reason);
    action.session = member.session;
    action.lease = background_->lease;
    action.range = {0, run_.config.test_samples};
    action.pass = {.kind = PassKind::evaluate, .number = run_.version};
    action.positions = {.epoch = background_->epoch, .count = run_.config.test_samples};
    pending_ = background_->compared;
    if (pending_) check_ = Check{.worker = member.worker};
    return;
  }
}

// The head's own devices are believed in all else, too.
bool Evaluation::looked_at(const Member& member) {
  if (run_.config.verify.part <= 0 || run_.config.verify.alike || member.local) return false;
  return !member.shown.compared_background || random_.below(kComparedOneIn) == 0;
}

void Evaluation::done() {
  pending_ = false;
  if (!check_) return;
  check_->by_everybody = true;
  compare();
}

void Evaluation::compare() {
  if (check_->evaluated && check_->by_everybody) run_.act(ActionKind::compare_background, {.worker = check_->worker});
}

void Evaluation::on(const BackgroundCompared& event) {
  if (!check_ || check_->worker != event.worker) return;
  check_.reset();
  for (Member& member : run_.roster.all())
    if (member.worker == event.worker)
      (event.alike ? member.shown.compared_background : member.shown.failed_background) = true;
}

void Evaluation::on(const BackgroundEvaluated& event) {
  if (!background_ || background_->session != event.session || background_->lease != event.lease) return;
  if (!event.whole) return drop(true);
  Action& taken = run_.act(ActionKind::taken, {.code = ReasonCode::all_covered, .worker = background_->worker});
  taken.session = background_->session;
  taken.lease = background_->lease;
  taken.pass = {.kind = PassKind::evaluate, .number = background_->version};
  background_.reset();
  if (!check_) return;
  check_->evaluated = true;
  compare();
}

void Evaluation::watch(Time now) {
  if (background_ && now >= background_->deadline) drop(true);
}

void Evaluation::session_lost(SessionId session) {
  if (background_ && background_->session == session) drop(false);
}

// The newest version is evaluated in its place.
void Evaluation::drop(bool failed) {
  if (Member* member = run_.roster.find(background_->session)) {
    member->shown.failed_background = failed;
    Action& cancel = run_.act(ActionKind::cancel_background, {.code = ReasonCode::overdue, .worker = member->worker});
    cancel.session = member->session;
    cancel.lease = background_->lease;
    cancel.version = background_->version;
    cancel.pass = {.kind = PassKind::evaluate, .number = background_->version};
  }
  background_.reset();
  if (std::exchange(check_, std::nullopt)) return;
  pending_ = pending_ || !work_.evaluating();
}

}  // namespace motley::modes

#include "cluster/coordinator_machine.h"

#include <algorithm>
#include <initializer_list>
#include <variant>

#include "base/assert.h"

namespace motley::cluster {

using fleet::Member, fleet::MemberState, modes::Action, modes::ActionKind, modes::Pauses, modes::Reason,
    modes::ReasonCode;

CoordinatorMachine::CoordinatorMachine(const modes::RunConfig& config, modes::PerformanceModel& performance)
    : rooms_(config, performance, *this),
      attendance_(rooms_),
      parking_(rooms_.run.roster, performance, attendance_, config.measure_again),
      sessions_(rooms_, parking_) {
  MOTLEY_ASSERT(config.grain > 0 && config.chunks > 0);
  MOTLEY_ASSERT(steps() <= modes::PassId::kNumberMax);
}

void CoordinatorMachine::decide(const modes::Event& event, Time now, modes::Actions& actions) {
  rooms_.run.actions = &actions;
  std::visit([&](const auto& concrete) { on(concrete, now); }, event);
  if (state_ == RunState::running) {
    rooms_.local.settle(now);
    if (std::ranges::all_of(rooms_.all_modes(), &modes::Mode::closed)) open_next(now);
    rooms_.exact.settle(now);
    rooms_.rounds.settle(now);
  }
  rooms_.run.actions = nullptr;
}

void CoordinatorMachine::cut_steps(std::span<const BatchChange> changes) {
  MOTLEY_ASSERT(paused());
  for (const BatchChange& change : changes) {
    MOTLEY_ASSERT(change.first_step >= version());
    rooms_.run.batches.change(change);
  }
}

void CoordinatorMachine::heard(fleet::SessionId session, Time now) {
  if (Member* member = rooms_.run.roster.find(session)) member->heard = std::max(member->heard, now);
}

std::uint64_t CoordinatorMachine::members_wanted() const noexcept {
  const std::uint64_t wanted = rooms_.run.opened_any ? 1 : std::max<std::uint64_t>(rooms_.run.config.min_workers, 1);
  const std::uint64_t here = static_cast<std::uint64_t>(std::ranges::count_if(members().all(), [&](const Member& m) {
    const bool counts = m.state == MemberState::member || m.state == MemberState::parked;
    return counts &&
           (rooms_.run.opened_any || !m.shown.unproven);  // all that were waited for have a share of the first pass
  }));
  return here >= wanted ? 0 : wanted - here;
}

void CoordinatorMachine::on(const modes::Started&, Time) {
  MOTLEY_ASSERT(state_ == RunState::waiting);
  state_ = RunState::running;
  const modes::RunConfig& config = rooms_.run.config;
  const bool owed = config.pauses != Pauses::never && config.pause_owed && version() > 0 && rooms_.run.at_eval_point();
  rooms_.pause.due(false, owed);
  rooms_.evaluation.started(owed);
}

void CoordinatorMachine::on(const modes::StopAsked& event, Time) {
  final_ = final_ || event.final;
  if (!finished()) rooms_.run.stopping = true;
}

void CoordinatorMachine::on(const modes::SessionOpened& event, Time now) {
  sessions_.on(event, finished() ? std::optional(end_reason()) : std::nullopt, now);
}

void CoordinatorMachine::on(const modes::Resumed& event, Time now) {
  if (!paused() || event.version != version() || finished()) return;
  rooms_.pause.resume();
  sessions_.resumed(now);
}

void CoordinatorMachine::on(const modes::Ticked&, Time now) {
  sessions_.notice_gap(now);
  sessions_.watch(now);
  for (modes::Mode* mode : rooms_.all_modes()) mode->watch(now);
  rooms_.evaluation.watch(now);
}

void CoordinatorMachine::open_next(Time now) {
  modes::Run& run = rooms_.run;
  if (run.stopping) return finish({.code = ReasonCode::stopped});
  if (pause()) return;
  const bool over = run.version >= run.steps();
  if (over && rooms_.evaluation.background()) return;  // its result comes first, or it is overdue
  if (over && !rooms_.evaluation.pending()) return finish({.code = ReasonCode::run_over});
  if (run.roster.count(MemberState::member) == 0) parking_.take_in_parked();
  if (members_wanted() > 0) return;
  if (rooms_.evaluation.pending()) {
    rooms_.rounds.recall();
    return rooms_.exact.open_evaluation(now);
  }
  for (modes::Mode* mode : std::initializer_list<modes::Mode*>{&rooms_.rounds, &rooms_.local, &rooms_.exact})
    if (mode->open(now)) return;
}

bool CoordinatorMachine::pause() {
  if (paused()) return true;
  // A device of the head that is being measured, or is not ready yet where a run goes on, computes with what the body
  // is to look at.
  const bool measured = std::ranges::any_of(members().all(), [](const Member& m) { return m.local && m.trial != 0; });
  const bool first = !rooms_.run.opened_any && version() < rooms_.run.steps() && members_wanted() > 0;
  if ((measured || first) && rooms_.pause.is_due(rooms_.evaluation.pending())) return true;
  const Pause begins = rooms_.pause.begin(rooms_.evaluation.pending());
  if (begins == Pause::none) return false;
  Action& action = rooms_.run.act(ActionKind::pause, {.code = ReasonCode::paused});
  action.version = version();
  action.urgent = begins == Pause::step;
  return true;
}

void CoordinatorMachine::take_in_again(Member& member) {
  attendance_.take_in(member, Reason{.code = ReasonCode::joined, .worker = member.worker});
}

void CoordinatorMachine::version_made(bool shared, Duration took, Time now) {
  const Pauses pauses = rooms_.run.config.pauses;
  rooms_.evaluation.version_made();
  rooms_.pause.due(pauses == Pauses::steps, pauses != Pauses::never && rooms_.run.at_eval_point());
  if (!shared) return;
  rooms_.local.pass_shared();
  parking_.park_idle(rooms_.run.batch(), now);
  if (rooms_.local.may_open()) parking_.park_others(rooms_.run.batch(), took, now);
  if (rooms_.evaluation.pending()) rooms_.evaluation.go_to_background(now);
}

void CoordinatorMachine::delegation_ended(Time now) {
  if (rooms_.evaluation.pending()) rooms_.evaluation.go_to_background(now);
}

void CoordinatorMachine::finish(Reason reason) {
  MOTLEY_ASSERT(!finished() && rooms_.local.closed());
  state_ = RunState::finished;
  rooms_.run.finished = true;
  rooms_.exact.end();
  rooms_.rounds.end();
  rooms_.run.act(ActionKind::finished, reason);
  sessions_.close_all({.code = end_reason()});
}

// A run that was stopped before its end can be resumed, so its workers are to come back.
ReasonCode CoordinatorMachine::end_reason() const noexcept {
  const modes::Run& run = rooms_.run;
  const bool resumed = run.stopping && run.version < run.steps() && run.config.resumable && !final_;
  return resumed ? ReasonCode::stopped : ReasonCode::run_over;
}

}  // namespace motley::cluster

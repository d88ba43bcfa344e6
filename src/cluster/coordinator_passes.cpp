// Passes: opening them, summing and updating their chunks, closing them.

#include <algorithm>

#include "base/assert.h"
#include "cluster/coordinator_machine.h"

namespace motley::cluster {

bool CoordinatorMachine::evaluation_due() const noexcept { return config_.test_samples > 0 && at_mark(); }

void CoordinatorMachine::open_next(Time now) {
  MOTLEY_ASSERT(!pass_ && !stretch_ && started_ && !finished_);
  if (stopping_) return finish({.code = ReasonCode::stopped});
  if (hold()) return;
  if (version_ >= steps() && aside_) return;  // its result comes first, or it is overdue
  if (version_ >= steps() && !evaluation_pending_) return finish({.code = ReasonCode::run_over});
  if (members_.count(MemberState::member) == 0) take_in_parked();
  if (members_wanted() > 0) return;
  if (evaluation_pending_) {
    const std::uint64_t last_step = version_ == 0 ? 0 : version_ - 1;
    const std::uint64_t epoch = batches_.range(last_step).epoch;
    open({.kind = PassKind::evaluate, .number = version_}, {.epoch = epoch, .count = config_.test_samples}, now);
  } else if (!lend(now)) {
    open({.kind = PassKind::train, .number = version_}, batches_.range(version_), now);
  }
}

void CoordinatorMachine::open(PassId id, PassRange range, Time now) {
  pass_ = OpenPass{.id = id, .range = range, .opened = now};
  opened_any_ = true;
  reduced_ = applied_ = 0;
  reissue_wanted_ = balance_wanted_ = false;
  leases_.clear();
  avoid_.clear();
  // The result of an evaluation lease comes in one piece: one chunk.
  coverage_.reset(range.count, id.kind == PassKind::train ? config_.chunks : 1);
  split_members_.clear();
  split_workers_.clear();
  for (Member& member : members_.all()) {
    if (!member.streams) continue;
    act(ActionKind::open_pass).session = member.session;
    if (member.state == MemberState::member) split_members_.push_back(&member);
  }
  std::sort(split_members_.begin(), split_members_.end(),
            [](const Member* a, const Member* b) { return a->worker < b->worker; });
  for (const Member* member : split_members_) split_workers_.push_back(member->worker);
  split_counts_.assign(split_workers_.size(), 0);
  pace_.split(id.kind, range.count, split_workers_, false, split_counts_);
  if (training())
    for (std::size_t i = 0; i < split_members_.size(); ++i) {
      split_members_[i]->share = split_counts_[i];
      split_members_[i]->left_out = split_counts_[i] == 0 ? split_members_[i]->left_out + 1 : 0;
    }
  grant_shares(now);
}

void CoordinatorMachine::reduce_if_ready(ChunkId chunk) {
  if (!coverage_.ready(chunk)) return;
  coverage_.set_reduced(chunk);
  Action& action =
      act(training() ? ActionKind::reduce : ActionKind::close_evaluation, {.code = ReasonCode::all_covered});
  action.chunk = chunk;
  if (!training()) end_open_leases();
}

void CoordinatorMachine::on(const ChunkReduced& event, Time) {
  if (finished_) return;
  MOTLEY_ASSERT(training() && coverage_.reduced(event.chunk));
  ++reduced_;
  MOTLEY_ASSERT(reduced_ <= config_.chunks);
  if (version_ >= config_.whole_until) {
    act(ActionKind::apply, {.code = ReasonCode::all_covered}).chunk = event.chunk;
  } else if (reduced_ == config_.chunks) {
    act(ActionKind::clip, {.code = ReasonCode::all_covered});
  }
}

void CoordinatorMachine::on(const Clipped&, Time) {
  if (finished_) return;
  MOTLEY_ASSERT(training() && reduced_ == config_.chunks && applied_ == 0);
  for (ChunkId i = 0; i < config_.chunks; ++i)
    act(ActionKind::apply, {.code = ReasonCode::all_covered}).chunk = (config_.first_applied + i) % config_.chunks;
}

void CoordinatorMachine::on(const ChunkApplied&, Time now) {
  if (finished_) return;
  MOTLEY_ASSERT(training() && applied_ < config_.chunks);
  ++applied_;
  if (applied_ < config_.chunks) return;
  for (const Lease& lease : leases_.all())
    if (lease.live()) report_late(lease, now);
  end_open_leases();
  act(ActionKind::close_step, {.code = ReasonCode::all_covered});
}

// Others computed its positions too; without this its worker would never be measured, and get as many again.
void CoordinatorMachine::report_late(const Lease& lease, Time now) {
  if (!training() || !lease.overdue || !lease.first_of_pass) return;
  Action& late = act(ActionKind::late);
  late.session = lease.session;
  late.worker = lease.worker;
  late.lease = lease.id;
  late.range = lease.range;
  late.number = lease.state == LeaseState::begun ? lease.range.count : lease.last.samples;
  late.elapsed = now - lease.granted;
}

void CoordinatorMachine::end_open_leases() {
  for (Lease& lease : leases_.all()) {
    if (!lease.live()) continue;
    revoke(lease, {.code = ReasonCode::covered_elsewhere});
    lease.state = LeaseState::ended;
  }
  reissue_wanted_ = false;
}

void CoordinatorMachine::on(const PassFinished&, Time now) {
  if (finished_) return;
  MOTLEY_ASSERT(pass_);
  if (training()) {
    MOTLEY_ASSERT(applied_ == config_.chunks);
    ++version_;
    ++train_passes_;
    evaluation_pending_ = evaluation_pending_ || evaluation_due();
    note_holds();
  } else {
    evaluation_pending_ = false;
  }
  const bool trained = training();
  const Duration took = now - pass_->opened;
  applied_ = reduced_ = 0;
  pass_.reset();
  if (trained) park_idle(now);
  if (trained) park_others(took, now);
  if (trained && evaluation_pending_) evaluate_aside(now);
  // Somebody computed the same positions and found them finite: the first worker is to blame.
  const std::vector<Avoid> suspects = std::exchange(avoid_, {});
  for (const Avoid& suspect : suspects)
    if (suspect.poisoned) strike(suspect.worker);
  for (std::size_t i = members_.all().size(); i-- > 0;) dismiss_if_idle(members_.all()[i].session);
  MOTLEY_ASSERT(!finished_);
}

void CoordinatorMachine::stop_if_idle() {
  // An evaluation is not worth waiting for, and a step that nobody works on would never close. One that is half applied
  // must: the state between two versions cannot be saved.
  const bool closing = coverage_.complete();
  const bool hopeless = training() && members_.admitted() == 0 && applied_ == 0;
  if (!closing && (!training() || hopeless)) finish({.code = ReasonCode::stopped});
}

void CoordinatorMachine::finish(Reason reason) {
  MOTLEY_ASSERT(!finished_ && !stretch_);
  finished_ = true;
  end_open_leases();
  act(ActionKind::finished, reason);
  while (!members_.all().empty()) close_session(members_.all().front().session, {.code = end_reason()});
}

// A run that was stopped before its end can be resumed, so its workers are to come back.
ReasonCode CoordinatorMachine::end_reason() const noexcept {
  return stopping_ && version_ < steps() && config_.resumable && !final_ ? ReasonCode::stopped : ReasonCode::run_over;
}

}  // namespace motley::cluster

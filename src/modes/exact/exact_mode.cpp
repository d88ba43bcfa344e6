#include "modes/exact/exact_mode.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/assert.h"

namespace motley::modes {

bool ExactMode::open(Time now) {
  open({.kind = PassKind::train, .number = run_.version}, run_.batches.range(run_.version), now);
  return true;
}

void ExactMode::open_evaluation(Time now) {
  const std::uint64_t last_step = run_.version == 0 ? 0 : run_.version - 1;
  const std::uint64_t epoch = run_.batches.range(last_step).epoch;
  open({.kind = PassKind::evaluate, .number = run_.version}, {.epoch = epoch, .count = run_.config.test_samples}, now);
}

void ExactMode::open(PassId id, PassRange range, Time now) {
  MOTLEY_ASSERT(closed());
  work_.state.enter(PassState::collecting);
  work_.pass = OpenPass{.id = id, .range = range, .opened = now};
  run_.opened_any = true;
  chunks_.begin();
  work_.reissue.reset();
  work_.balance = false;
  work_.leases.clear();
  work_.avoid.clear();
  contributions_.begin();
  verification_.begin();
  // The result of an evaluation lease comes in one piece: one chunk.
  work_.coverage.reset(range.count, id.kind == PassKind::train ? run_.config.chunks : 1);
  grants_.share_out(now);
}

void ExactMode::take(const WorkEvent& event, Time now) {
  std::visit([&](const auto& concrete) { on(concrete, now); }, event);
}

void ExactMode::on(const LeaseProgress& event, Time now) {
  if (Lease* lease = contributions_.live_lease(event.session, event.lease)) balance_.progress(*lease, event, now);
}

void ExactMode::on(const PassFinished&, Time now) {
  if (run_.finished) return;
  MOTLEY_ASSERT(work_.pass);
  const bool trained = work_.training();
  const Duration took = now - work_.pass->opened;
  const std::vector<WorkerId> contradicted = contributions_.contradicted();
  const std::vector<WorkerId> refuted = trained ? verification_.close() : std::vector<WorkerId>();
  work_.state.enter(PassState::closed);
  work_.pass.reset();
  chunks_.begin();
  if (trained) {
    contributions_.learn();
    ++run_.version;
    host_.version_made(true, took, now);
  } else {
    host_.evaluated();
  }
  // Somebody computed the same positions and found them finite: the first worker is to blame.
  const std::vector<PassWork::Avoid> suspects = std::exchange(work_.avoid, {});
  for (const PassWork::Avoid& suspect : suspects)
    if (suspect.poisoned || (suspect.unlikely && !suspect.confirmed && !suspect.undecided))
      host_.strike(suspect.worker);
  for (const WorkerId wrong : contradicted)
    if (std::ranges::find(refuted, wrong) == refuted.end()) host_.strike(wrong);
  for (const WorkerId wrong : refuted) host_.refute(wrong);
  host_.all_idle();
  MOTLEY_ASSERT(!run_.finished);
}

void ExactMode::watch(Time now) {
  contributions_.watch(now);
  work_.balance = true;
}

void ExactMode::settle(Time now) {
  if (run_.stopping && work_.pass) stop_if_idle();
  if (work_.reissue && work_.pass) grants_.reissue(now);
  if (work_.balance && work_.pass) balance_.balance(now);
  if (!run_.finished) chunks_.settle(now);
}

void ExactMode::stop_if_idle() {
  // An evaluation is not worth waiting for, and a step that nobody works on would never close. One that is half applied
  // must: the state between two versions cannot be saved.
  const bool closing = work_.coverage.complete();
  const bool hopeless = work_.training() && run_.roster.admitted() == 0 && chunks_.updated() == 0;
  if (!closing && (!work_.training() || hopeless)) host_.finish({.code = ReasonCode::stopped});
}

void ExactMode::shift(Duration gap, Time now) noexcept {
  for (Lease& lease : work_.leases.all()) {
    lease.granted = std::min(lease.granted + gap, now);
    lease.due.deadline += gap;
    lease.due.unheard_deadline += gap;
    lease.due.latest += gap;
    for (Lease::Report* report : {&lease.first, &lease.last}) report->at = std::min(report->at + gap, now);
  }
  if (work_.pass) work_.pass->opened = std::min(work_.pass->opened + gap, now);
}

void ExactMode::joined(const Member& member, Reason reason) {
  if (chunks_.updated() > 0) work_.act(ActionKind::send_next, reason).session = member.session;
  if (work_.pass) work_.act(ActionKind::open_pass, reason).session = member.session;
}

}  // namespace motley::modes

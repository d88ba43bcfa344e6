#include "modes/helper/helper_mode.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/assert.h"
#include "modes/exact/early.h"

namespace motley::modes {

bool HelperMode::open(Time now) {
  if (run_.config.helper_share <= 0) return false;
  credit();
  credited_.clear();
  rest_in_vain(now);
  const std::vector<Lease> before = early_;
  for (const Lease& lease : before) {
    const Member* member = run_.roster.find(lease.session);
    // Whoever is not heard of now will hardly be in time.
    if (!is_whole(lease) && (member == nullptr || run_.is_unheard(*member, now) || !run_.has_fast()))
      drop(lease.id, {.code = ReasonCode::lost_lease, .worker = lease.worker});
  }
  const std::vector<Lease> kept = std::exchange(early_, {});
  exact_.open(kept, now);
  credit();
  grant_ahead(now);
  return true;
}

void HelperMode::credit() {
  for (const Lease& lease : exact_.work().leases.all()) {
    if (!lease.early || lease.settled < lease.chunks.size() ||
        std::ranges::find(credited_, lease.id) != credited_.end())
      continue;
    credited_.push_back(lease.id);
    sizes_[lease.worker].in_time(lease.range.count);
  }
}

void HelperMode::rest_in_vain(Time now) {
  for (auto& [worker, size] : sizes_) {
    if (!size.in_vain()) continue;
    size.rested();
    host_.in_vain(worker, now);
  }
}

void HelperMode::take(const WorkEvent& event, Time now) {
  std::visit([&](const auto& concrete) { on(concrete, now); }, event);
}

const Lease* HelperMode::find(LeaseId lease) const noexcept {
  const auto found = std::ranges::find(early_, lease, &Lease::id);
  return found == early_.end() ? nullptr : &*found;
}

Lease* HelperMode::live_lease(SessionId session, LeaseId id) {
  const auto found = std::ranges::find(early_, id, &Lease::id);
  return found != early_.end() && found->session == session ? &*found : nullptr;
}

bool HelperMode::busy(SessionId session) const noexcept {
  return std::ranges::find(early_, session, &Lease::session) != early_.end();
}

void HelperMode::on(const LeaseBegun& event, Time) {
  Lease* lease = live_lease(event.session, event.lease);
  if (lease == nullptr || lease->state != LeaseState::granted) return;
  if (note_early(*lease, event)) return;
  drop(lease->id, {.code = ReasonCode::cut_short, .worker = lease->worker});
  host_.idle(event.session);
}

// Whether it is fit to count is seen when its step opens.
void HelperMode::on(const ChunkArrived& event, Time) {
  if (Lease* lease = live_lease(event.session, event.lease)) note_early(*lease, event);
}

void HelperMode::on(const LeaseFinished& event, Time) {
  const Lease* lease = live_lease(event.session, event.lease);
  if (lease == nullptr || event.count > 0) return;
  drop(lease->id, {.code = ReasonCode::cut_short, .worker = lease->worker});
  host_.idle(event.session);
}

void HelperMode::on(const LeaseFailed& event, Time) {
  const Lease* lease = live_lease(event.session, event.lease);
  if (lease == nullptr) return;
  const WorkerId worker = lease->worker;
  drop(lease->id, {.code = ReasonCode::failed_lease, .worker = worker});
  host_.strike(worker);
  host_.idle(event.session);
}

void HelperMode::session_lost(SessionId session, Reason reason) {
  const std::vector<Lease> before = early_;
  for (const Lease& lease : before)
    if (lease.session == session) drop(lease.id, reason);
}

// The others have made their part: they make the rest, too.
void HelperMode::settle(Time now) {
  const PassWork& work = exact_.work();
  if (!work.training()) return;
  bool late = false;
  for (const Lease& lease : work.leases.all()) {
    if (lease.live() && !lease.early) return;
    late = late || lease.live();
  }
  if (!late) return;
  for (const Lease& lease : work.leases.all())
    if (lease.early && lease.live()) sizes_[lease.worker].late(lease.range.count);
  exact_.end_early({.code = ReasonCode::overdue});
  host_.all_idle();
  exact_.settle(now);
}

void HelperMode::end() {
  const std::vector<Lease> before = early_;
  for (const Lease& lease : before) drop(lease.id, {.code = ReasonCode::run_over, .worker = lease.worker});
}

Action& HelperMode::act_on(const Lease& lease, ActionKind kind, Reason reason) {
  Action& action = run_.act(kind, reason);
  action.session = lease.session;
  action.worker = lease.worker;
  action.lease = lease.id;
  action.pass = early_pass();
  action.positions = run_.batches.range(action.pass.number);
  action.first_of_pass = true;
  return action;
}

void HelperMode::drop(LeaseId id, Reason reason) {
  const auto found = std::ranges::find(early_, id, &Lease::id);
  const Lease lease = std::move(*found);
  early_.erase(found);
  const bool begun = lease.state == LeaseState::begun;
  Action& over = act_on(lease, begun ? ActionKind::taken : ActionKind::cancel, reason);
  for (ChunkId chunk = 0; begun && chunk < lease.chunks.size(); ++chunk) over.discarded.push_back(chunk);
  act_on(lease, ActionKind::abandon, reason);
}

bool HelperMode::may_help(const Member& member, Time now) const {
  return run_.helps_only(member) && member.state == MemberState::member && member.streams && !member.unproven &&
         !run_.is_unheard(member, now) && !exact_.busy(member.session);
}

// What is looked at or changed between two steps is not known one step before.
void HelperMode::grant_ahead(Time now) {
  const std::uint64_t step = run_.version + 1;
  const RunConfig& config = run_.config;
  if (run_.stopping || step >= run_.steps() || step < config.helper_from || config.holds == Holds::steps) return;
  const StepRange next = run_.batches.range(step);
  const bool looks = config.test_samples > 0 || config.holds != Holds::never;
  if ((looks && Marks{config.evaluate_every}.at(run_.batches, step)) ||
      next.epoch != run_.batches.range(run_.version).epoch)
    return;
  const auto most = static_cast<std::uint64_t>(config.helper_share * static_cast<double>(next.count));
  std::vector<const Member*> helpers;
  for (const Member& member : run_.roster.all())
    if (may_help(member, now)) helpers.push_back(&member);
  std::ranges::sort(helpers, {}, &Member::worker);
  std::uint64_t end = next.count;
  for (std::size_t i = 0; i < helpers.size(); ++i) {
    const std::uint64_t left = most - (next.count - end), fair = left / (helpers.size() - i);
    const std::uint64_t wanted = sizes_[helpers[i]->worker].next(fair);
    // Ranges start on the grain.
    const std::uint64_t first = (end - wanted + config.grain - 1) / config.grain * config.grain;
    if (wanted == 0 || first >= end) continue;
    grant(*helpers[i], {first, end - first}, now);
    end = first;
  }
}

void HelperMode::grant(const Member& to, Interval slice, Time now) {
  Lease lease;
  lease.id = run_.next_lease();
  lease.session = to.session;
  lease.worker = to.worker;
  lease.range = lease.ceiling = slice;
  lease.first_of_pass = lease.early = true;
  lease.granted = now;
  lease.chunks.assign(run_.config.chunks, Lease::ChunkState::awaited);
  const Reason reason{ReasonCode::share, to.worker, slice.count, run_.batches.range(run_.version + 1).count};
  Action& action = act_on(lease, ActionKind::grant, reason);
  action.range = action.ceiling = slice;
  early_.push_back(std::move(lease));
}

}  // namespace motley::modes

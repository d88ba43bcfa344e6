// Work that moves between leases under way, before it is done: what the shares got wrong costs no contribution more.

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "cluster/coordinator_machine.h"

namespace motley::cluster {
namespace {

// In fewer micro-batches there is no time to see who is behind, and to do something about it.
constexpr std::uint64_t kUnitsMin = 4;

}  // namespace

// Two neighbours compute towards each other, and the boundary between them may move. Whoever has no partner, or too
// little to do, has a lease that stays as it is.
void CoordinatorMachine::grant_shares(Time now) {
  std::uint64_t first = 0;
  std::size_t used = 0;
  split_ranges_.clear();
  for (std::size_t i = 0; i < split_members_.size(); ++i) {
    MOTLEY_ASSERT(split_counts_[i] <= pass_->range.count - first);
    if (split_counts_[i] == 0) continue;
    split_ranges_.push_back({first, split_counts_[i]});
    first += split_counts_[i];
    split_members_[used++] = split_members_[i];
  }
  MOTLEY_ASSERT(first == pass_->range.count);
  const auto share = [&](std::size_t i, Interval ceiling) {
    const Reason reason{ReasonCode::share, split_members_[i]->worker, split_ranges_[i].count, pass_->range.count};
    return grant(*split_members_[i], split_ranges_[i], ceiling, true, reason, now);
  };
  for (std::size_t i = 0; i < used;) {
    const Interval zone = training() && i + 1 < used ? meeting_zone(i, i + 1) : Interval{};
    if (zone.count == 0) {
      share(i, split_ranges_[i]);
      ++i;
      continue;
    }
    const LeaseId low = share(i, {split_ranges_[i].first, zone.end() - split_ranges_[i].first});
    const LeaseId high = share(i + 1, {zone.first, split_ranges_[i + 1].end() - zone.first});
    leases_.find(low)->partner = high;
    leases_.find(high)->partner = low;
    i += 2;
  }
}

/// Where the boundary between two shares may lie: everywhere but in the first micro-batch of either. Empty: it stays.
Interval CoordinatorMachine::meeting_zone(std::size_t low, std::size_t high) const {
  const std::uint64_t low_unit = pace_.unit(split_members_[low]->worker);
  const std::uint64_t high_unit = pace_.unit(split_members_[high]->worker);
  const auto too_few = [](std::uint64_t count, std::uint64_t unit) { return unit == 0 || count / unit < kUnitsMin; };
  if (too_few(split_ranges_[low].count, low_unit) || too_few(split_ranges_[high].count, high_unit)) return {};
  const std::uint64_t first = split_ranges_[low].first + low_unit;
  const std::uint64_t last = (split_ranges_[high].end() - high_unit) / config_.grain * config_.grain;
  return {first, last - first};
}

void CoordinatorMachine::on(const LeaseProgress& event, Time now) {
  Lease* lease = live_lease(event.session, event.lease);
  if (lease == nullptr) return;
  const std::uint64_t done = std::min(event.done, lease->range.count);
  if (done > lease->last.samples) {
    lease->last = {done, now};
    if (lease->first.samples == 0) lease->first = lease->last;
    balance_wanted_ = training();
  }
  if (event.limit > 0 && event.trim == lease->trims && lease->asked && lease->state == LeaseState::granted)
    answered(*lease, event.limit, now);
}

Pace::Part CoordinatorMachine::part_of(const Lease& lease, Time now) noexcept {
  return {.worker = lease.worker,
          .limit = lease.range.count,
          .ceiling = lease.ceiling.count,
          .first_samples = lease.first.samples,
          .samples = lease.last.samples,
          .first_after = lease.first.at - lease.granted,
          .newest_after = lease.last.at - lease.granted,
          .after = now - lease.granted};
}

bool CoordinatorMachine::movable(const Lease& lease) const noexcept {
  return lease.state == LeaseState::granted && !lease.overdue && !lease.asked;
}

void CoordinatorMachine::balance(Time now) {
  balance_wanted_ = false;
  if (!training() || finished_) return;
  for (Lease& low : leases_.all()) {
    Lease* high = low.partner == 0 || low.from_end || !movable(low) ? nullptr : leases_.find(low.partner);
    if (high != nullptr && movable(*high) && low.range.end() == high->range.first) move_boundary(low, *high, now);
  }
  for (const Member& member : members_.all()) help(member, now);
}

void CoordinatorMachine::move_boundary(Lease& low, Lease& high, Time now) {
  for (const auto& [late, early] : {std::pair(&low, &high), std::pair(&high, &low)}) {
    const std::uint64_t samples = pace_.shift(part_of(*late, now), part_of(*early, now));
    if (samples == 0 || !takes_more(early, handed(*late, samples))) continue;
    return ask_back(*late, samples, 0);
  }
}

void CoordinatorMachine::help(const Member& idle, Time now) {
  if (idle.state != MemberState::member || leases_.has_live(idle.session)) return;
  bool worked = false;
  Lease* latest = nullptr;
  std::uint64_t most = 0;
  for (Lease& lease : leases_.all()) {
    worked = worked || lease.session == idle.session;
    if (lease.live() && lease.asked && lease.heir == idle.session) return;
    const bool unfit = std::any_of(avoid_.begin(), avoid_.end(), [&](const Avoid& avoid) {
      return avoid.worker == idle.worker && avoid.range.overlaps(lease.range);
    });
    if (!movable(lease) || unfit) continue;
    const std::uint64_t samples = pace_.relief(part_of(lease, now), idle.worker, now - pass_->opened);
    if (samples <= most) continue;
    most = samples;
    latest = &lease;
  }
  // Who has had no part in the pass may not hold its weights yet.
  if (worked && latest != nullptr) ask_back(*latest, most, idle.session);
}

/// The positions at the end of a lease that `samples` fewer leave free.
Interval CoordinatorMachine::handed(const Lease& lease, std::uint64_t samples) noexcept {
  return {lease.from_end ? lease.range.first : lease.range.end() - samples, samples};
}

void CoordinatorMachine::ask_back(Lease& lease, std::uint64_t samples, SessionId heir) {
  MOTLEY_ASSERT(samples < lease.range.count);
  lease.asked = true;
  lease.heir = heir;
  send_trim(lease, lease.part(lease.range.count - samples), {ReasonCode::moved, lease.worker, samples});
}

void CoordinatorMachine::send_trim(Lease& lease, Interval wanted, Reason reason) {
  Action& action = act(ActionKind::trim, reason);
  action.session = lease.session;
  action.lease = lease.id;
  action.range = wanted;
  action.number = ++lease.trims;
}

// The range shrinks only now: until the worker said so, it might have computed these positions.
void CoordinatorMachine::answered(Lease& lease, std::uint64_t limit, Time now) {
  lease.asked = false;
  balance_wanted_ = true;
  if (limit >= lease.range.count) return;
  const Interval promised = lease.range;
  Interval kept = lease.part(limit);
  // Ranges start on the grain; a worker that was beyond what was asked of it may have stopped between.
  if (lease.from_end) {
    const std::uint64_t first = std::max(kept.first / config_.grain * config_.grain, promised.first);
    kept = {first, promised.end() - first};
  } else {
    const std::uint64_t end = (kept.end() + config_.grain - 1) / config_.grain * config_.grain;
    kept = {promised.first, std::min(end, promised.end()) - promised.first};
  }
  lease.range = kept;
  const Reason reason{ReasonCode::moved, lease.worker, promised.count - kept.count};
  if (kept.count > limit) send_trim(lease, kept, reason);
  if (kept.count < promised.count)
    hand_over(lease, {lease.from_end ? promised.first : kept.end(), promised.count - kept.count}, reason, now);
}

void CoordinatorMachine::hand_over(Lease& from, Interval freed, Reason reason, Time now) {
  const SessionId session = std::exchange(from.heir, 0);
  const Member* heir = session == 0 ? nullptr : members_.find(session);
  Lease* partner = from.partner == 0 ? nullptr : leases_.find(from.partner);
  if (from.overdue || !takes_more(partner, freed)) partner = nullptr;
  if (!from.overdue && heir != nullptr && heir->state == MemberState::member && !leases_.has_live(heir->session)) {
    grant(*heir, freed, freed, false, reason, now);
  } else if (partner != nullptr) {
    partner->asked = false;  // an answer that is under way is of an older Trim
    partner->range = {std::min(partner->range.first, freed.first), partner->range.count + freed.count};
    partner->deadline = std::max(
        partner->deadline,
        partner->granted + pace_.allowance(pass_->id.kind, partner->worker, leases_.outstanding(partner->session)));
    send_trim(*partner, partner->range, reason);
  } else {
    reissue_wanted_ = true;
    reissue_reason_ = reason;
  }
}

/// Whether the lease can be extended by these positions.
bool CoordinatorMachine::takes_more(const Lease* lease, Interval by) const noexcept {
  if (lease == nullptr || lease->state != LeaseState::granted || lease->overdue || !by.within(lease->ceiling))
    return false;
  const Member* member = members_.find(lease->session);
  const bool touches = lease->from_end ? by.end() == lease->range.first : lease->range.end() == by.first;
  return touches && member != nullptr && member->state == MemberState::member;
}

}  // namespace motley::cluster

// The part of RoundsMode that lets workers begin the next round while what they made of the open one is on its way.

#include <algorithm>
#include <utility>

#include "modes/rounds/rounds_mode.h"

namespace motley::modes {

using fleet::Member, fleet::MemberState;

RoundSpans RoundsMode::owed() const {
  RoundSpans all;
  if (ahead_) all.assign(ahead_->pass.spans.begin(), ahead_->pass.spans.end() - 1);
  all.insert(all.end(), owed_.begin(), owed_.end());
  return all;
}

bool RoundsMode::is_ahead(SessionId session, LeaseId lease) const noexcept {
  return ahead_ && lease != 0 && std::ranges::any_of(ahead_->slices, [&](const Ahead::Slice& slice) {
           return slice.lease == lease && slice.session == session;
         });
}

// Who makes a round alone would not be replayed: where it goes on from is kept nowhere. The last round has all that is
// owed, which is known only when the one before is closed. What comes between two rounds, or changes what a step is
// made with, comes at the end of an epoch or where evaluations are due.
bool RoundsMode::may_overlap() const {
  if (!run_.config.overlap || run_.stopping || run_.config.holds == Holds::steps) return false;
  const std::uint64_t next = run_.version + 1;
  if (next + 1 >= run_.steps() || Marks{run_.config.evaluate_every}.at(run_.batches, next)) return false;
  if (run_.batches.range(next).epoch != run_.batches.range(run_.version).epoch) return false;
  const WorkerId first = work_.leases.all().front().worker;
  return std::ranges::any_of(work_.leases.all(), [first](const Lease& lease) { return lease.worker != first; });
}

void RoundsMode::cut_ahead(Time now) {
  Ahead next{.pass = round_at(run_.version + 1), .slices = {}};
  std::vector<Member*> there = members(next.pass, now);
  const std::vector<Interval> parts = there.empty() ? std::vector<Interval>() : cut(next.pass, there);
  for (std::size_t i = 0; i < parts.size(); ++i)
    next.slices.push_back({.worker = there[i]->worker, .positions = parts[i]});
  ahead_ = std::move(next);
}

void RoundsMode::go_on(const Lease& begun, Time now) {
  if (work_.pass->local_steps < 2 || !may_overlap()) return;
  if (!ahead_) cut_ahead(now);
  const std::uint64_t most = ahead_->pass.local_steps / 2;
  const auto slice = std::ranges::find(ahead_->slices, begun.worker, &Ahead::Slice::worker);
  if (most == 0 || slice == ahead_->slices.end() || slice->positions.count == 0 || slice->lease != 0) return;
  const Member* member = run_.roster.find(begun.session);
  if (member == nullptr || member->state != MemberState::member || !member->streams) return;
  slice->session = begun.session;
  slice->lease = run_.next_lease();
  slice->positions = leasable(ahead_->pass, slice->positions);
  Action& action = say_grant(ahead_->pass, *member, slice->lease, slice->positions);
  action.first_of_pass = true;
  action.ahead = most;
}

void RoundsMode::withdraw(SessionId session, Reason reason) {
  if (!ahead_) return;
  for (Ahead::Slice& slice : ahead_->slices)
    if (slice.session == session) withdraw(slice, reason);
}

void RoundsMode::withdraw(Ahead::Slice& slice, Reason reason) {
  const LeaseId lease = std::exchange(slice.lease, 0);
  if (lease == 0) return;
  Action& action = run_.act(ActionKind::cancel, reason);
  action.session = slice.session;
  action.worker = slice.worker;
  action.lease = lease;
  action.pass = ahead_->pass.id;
  action.positions = ahead_->pass.range;
}

void RoundsMode::recall() {
  if (!ahead_) return;
  for (Ahead::Slice& slice : ahead_->slices) withdraw(slice, {.code = ReasonCode::covered_elsewhere});
  owed_ = owed();
  ahead_.reset();
}

// Who went on goes on; the others begin now. What was cut for who is gone comes first in the round after this one.
void RoundsMode::share_ahead(Ahead ahead, Time now) {
  deadline_ = now;
  std::ranges::sort(ahead.slices, {}, &Ahead::Slice::lease);
  for (const Ahead::Slice& slice : ahead.slices) {
    if (slice.lease == 0) continue;
    Member* member = run_.roster.find(slice.session);
    if (member == nullptr || member->state != MemberState::member) {
      Action& action = work_.act(ActionKind::cancel, {.code = ReasonCode::covered_elsewhere, .worker = slice.worker});
      action.session = slice.session;
      action.lease = slice.lease;
      continue;
    }
    add_lease(slice.lease, *member, slice.positions, now).first_of_pass = true;
    member->share = slice.positions.count;
    member->left_out = 0;
  }
  for (Member* member : members(*work_.pass, now)) {
    const auto slice = std::ranges::find(ahead.slices, member->worker, &Ahead::Slice::worker);
    if (slice == ahead.slices.end() || slice->lease != 0) continue;
    member->share = slice->positions.count;
    member->left_out = slice->positions.count == 0 ? member->left_out + 1 : 0;
    if (slice->positions.count > 0) grant(*member, slice->positions, true, now);
  }
}

}  // namespace motley::modes

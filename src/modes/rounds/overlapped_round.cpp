#include "modes/rounds/overlapped_round.h"

#include <algorithm>
#include <utility>

namespace motley::modes {

using fleet::Member, fleet::MemberState;

RoundSpans OverlappedRound::owed() const {
  RoundSpans all;
  if (cut_) all.assign(cut_->pass.spans.begin(), cut_->pass.spans.end() - 1);
  all.insert(all.end(), source_.owed().begin(), source_.owed().end());
  return all;
}

bool OverlappedRound::has(SessionId session, LeaseId lease) const noexcept {
  return cut_ && lease != 0 && std::ranges::any_of(cut_->slices, [&](const CutRound::Slice& slice) {
           return slice.lease == lease && slice.session == session;
         });
}

// Who makes a round alone would not be replayed: where it goes on from is kept nowhere. The last round has all that is
// owed, which is known only when the one before is closed. What comes between two rounds, or changes what a step is
// made with, comes at the end of an epoch or where evaluations are due.
bool OverlappedRound::may_overlap() const {
  if (!run_.config.overlap || run_.stopping || run_.config.pauses == Pauses::steps) return false;
  const std::uint64_t next = run_.version + 1;
  if (next + 1 >= run_.steps() || EvalPoints{run_.config.evaluate_every}.at(run_.batches, next)) return false;
  if (run_.batches.range(next).epoch != run_.batches.range(run_.version).epoch) return false;
  const WorkerId first = work_.leases.all().front().worker;
  return std::ranges::any_of(work_.leases.all(), [first](const Lease& lease) { return lease.worker != first; });
}

void OverlappedRound::cut(Time now) {
  CutRound next{.pass = source_.round(run_.version + 1), .slices = {}};
  std::vector<Member*> there = slices_.members(now);
  const std::vector<Interval> parts = there.empty() ? std::vector<Interval>() : slices_.cut(next.pass, there);
  for (std::size_t i = 0; i < parts.size(); ++i)
    next.slices.push_back({.worker = there[i]->worker, .positions = parts[i]});
  cut_ = std::move(next);
}

void OverlappedRound::go_on(const Lease& begun, Time now) {
  if (work_.pass->local_steps < 2 || !may_overlap()) return;
  if (!cut_) cut(now);
  const std::uint64_t most = cut_->pass.local_steps / 2;
  const auto slice = std::ranges::find(cut_->slices, begun.worker, &CutRound::Slice::worker);
  if (most == 0 || slice == cut_->slices.end() || slice->positions.count == 0 || slice->lease != 0) return;
  const Member* member = run_.roster.find(begun.session);
  if (member == nullptr || member->state != MemberState::member || !member->streams) return;
  slice->session = begun.session;
  slice->lease = run_.next_lease();
  slice->positions = slices_.leasable(cut_->pass, slice->positions);
  Action& action = slices_.say_grant(cut_->pass, *member, slice->lease, slice->positions);
  action.first_of_pass = true;
  action.overlapped = most;
}

void OverlappedRound::withdraw(SessionId session, Reason reason) {
  if (!cut_) return;
  for (CutRound::Slice& slice : cut_->slices)
    if (slice.session == session) withdraw(slice, reason);
}

void OverlappedRound::withdraw(CutRound::Slice& slice, Reason reason) {
  const LeaseId lease = std::exchange(slice.lease, 0);
  if (lease == 0) return;
  Action& action = run_.act(ActionKind::cancel, reason);
  action.session = slice.session;
  action.worker = slice.worker;
  action.lease = lease;
  action.pass = cut_->pass.id;
  action.positions = cut_->pass.range;
}

void OverlappedRound::recall() {
  if (!cut_) return;
  for (CutRound::Slice& slice : cut_->slices) withdraw(slice, {.code = ReasonCode::covered_elsewhere});
  cut_->pass.spans.pop_back();
  source_.owe(cut_->pass.spans);
  cut_.reset();
}

}  // namespace motley::modes

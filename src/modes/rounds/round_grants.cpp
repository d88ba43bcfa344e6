#include "modes/rounds/round_grants.h"

#include <algorithm>

#include "modes/doubtful.h"

namespace motley::modes {

using fleet::Member, fleet::MemberState;

namespace {

constexpr std::int64_t kDoublingsMax = 10;

}  // namespace

bool RoundGrants::in_vain(const Member* member) const {
  return std::ranges::any_of(work_.avoid, [&](const auto& one) { return one.worker == member->worker; });
}

std::vector<Member*> RoundGrants::able(Time now) {
  std::vector<Member*> all = slices_.members(now), others = all;
  std::erase_if(others, [&](const Member* member) { return in_vain(member); });
  return others.empty() ? all : others;
}

// What does not pay helps where nobody else does.
void RoundGrants::call_parked(Time now) {
  if (run_.roster.count(MemberState::parked) == 0) return;
  const auto helps = [&](const Member* member) { return !in_vain(member) && !work_.leases.has_live(member->session); };
  if (std::ranges::none_of(slices_.members(now), helps)) host_.take_in_parked();
}

// Who is late may be waited for where nobody else is free.
bool RoundGrants::somebody_is_free(Time now) {
  return std::ranges::any_of(able(now), [&](const Member* member) { return !work_.leases.has_live(member->session); });
}

void RoundGrants::share_out(Time now) {
  std::vector<Member*> members = able(now);
  if (members.empty()) return;
  const std::vector<Interval> parts = slices_.cut(*work_.pass, members);
  deadline_ = now;
  for (std::size_t i = 0; i < members.size(); ++i) {
    members[i]->share.samples = parts[i].count;
    members[i]->share.left_out = parts[i].count == 0 ? members[i]->share.left_out + 1 : 0;
    if (parts[i].count > 0) grant(*members[i], parts[i], true, now);
  }
}

void RoundGrants::share_rest(std::span<const Interval> free, Time now) {
  std::vector<Member*> members = able(now);
  if (members.empty()) return;
  deadline_ = now;
  std::uint64_t total = 0;
  for (const Interval& interval : free) total += interval.count;
  const std::uint64_t each = (total + members.size() - 1) / members.size();
  const std::uint64_t most = std::max(each, slices_.unit(*work_.pass));
  std::size_t next = 0;
  for (Interval left : free) {
    while (left.count > 0 && next < members.size()) {
      const std::uint64_t granted = grant(*members[next++], {left.first, std::min(left.count, most)}, false, now);
      left = {left.first + granted, left.count - granted};
    }
  }
}

// Who went on goes on; the others begin now. What was cut for who is gone comes first in the round after this one.
void RoundGrants::share_cut(CutRound cut, Time now) {
  deadline_ = now;
  std::ranges::sort(cut.slices, {}, &CutRound::Slice::lease);
  for (const CutRound::Slice& slice : cut.slices) {
    if (slice.lease == 0) continue;
    Member* member = run_.roster.find(slice.session);
    if (member == nullptr || member->state != MemberState::member) {
      Action& action = work_.act(ActionKind::cancel, {.code = ReasonCode::covered_elsewhere, .worker = slice.worker});
      action.session = slice.session;
      action.lease = slice.lease;
      continue;
    }
    add_lease(slice.lease, *member, slice.positions, now).first_of_pass = true;
    member->share.samples = slice.positions.count;
    member->share.left_out = 0;
  }
  for (Member* member : slices_.members(now)) {
    const auto slice = std::ranges::find(cut.slices, member->worker, &CutRound::Slice::worker);
    if (slice == cut.slices.end() || slice->lease != 0) continue;
    member->share.samples = slice->positions.count;
    member->share.left_out = slice->positions.count == 0 ? member->share.left_out + 1 : 0;
    if (slice->positions.count > 0) grant(*member, slice->positions, true, now);
  }
}

Lease& RoundGrants::add_lease(LeaseId id, const Member& to, Interval slice, Time now) {
  // What it has in hand already comes before.
  const std::uint64_t outstanding = work_.leases.outstanding(to.session) + slice.count;
  Lease& lease = work_.leases.add(id, to.session, to.worker, slice, run_.config.chunks);
  lease.boundary.ceiling = slice;
  lease.granted = now;
  // Who was late in this round has twice as long each time, or a wrong prediction would have no end.
  const auto late = std::ranges::count(work_.avoid, to.worker, &PassWork::Avoid::worker);
  const auto patience = std::int64_t{1} << std::min<std::int64_t>(late, kDoublingsMax);
  lease.due.deadline = now + patience * run_.performance.deadline(PassKind::train, to.worker, outstanding);
  deadline_ = std::max(deadline_, lease.due.deadline);
  return lease;
}

// What does not fit one lease stays free.
std::uint64_t RoundGrants::grant(const Member& to, Interval wanted, bool first_of_pass, Time now) {
  const Interval slice = slices_.leasable(*work_.pass, wanted);
  Lease& lease = add_lease(run_.next_lease(), to, slice, now);
  lease.first_of_pass = first_of_pass;
  slices_.say_grant(*work_.pass, to, lease.id, slice).first_of_pass = first_of_pass;
  return slice.count;
}

}  // namespace motley::modes

// The part of RoundsMode that cuts a round over its workers.

#include <algorithm>
#include <utility>

#include "modes/doubtful.h"
#include "modes/rounds/rounds_mode.h"

namespace motley::modes {

using fleet::Member;

namespace {

constexpr std::int64_t kDoublingsMax = 10;

}  // namespace

Reach RoundsMode::reach_of(const OpenPass& of, const Member& member) const {
  if (member.stock.all) return {.front = of.range.count, .back = of.range.count, .total = of.range.count};
  std::vector<StepRange> parts;
  parts.reserve(of.spans.size());
  for (const Owed& part : of.spans) parts.push_back(in_order(part));
  Reach found = reach(member.stock, parts);
  if (!found.whole() && suspects_.has(member.worker))
    found.front = 0;  // what is owed is not for who came to something unusual
  return found;
}

StepRange RoundsMode::in_order(const Owed& part) const {
  const StepRange step = run_.batches.range(part.step);
  return {step.epoch, step.order_first + part.first, part.count};
}

bool RoundsMode::has(const Member& member, Interval positions) const {
  return member.stock.all || std::ranges::all_of(parts_of(work_.pass->spans, positions),
                                                 [&](const Owed& part) { return member.stock.has(in_order(part)); });
}

bool RoundsMode::lacks(const OpenPass& of, const Member& member) const {
  return !member.stock.all && reach_of(of, member).most() < unit(of);
}

void RoundsMode::share_out(Time now) {
  std::vector<Member*> members = able(now);
  if (members.empty()) return;
  const std::vector<Interval> parts = cut(*work_.pass, members);
  deadline_ = now;
  for (std::size_t i = 0; i < members.size(); ++i) {
    members[i]->share = parts[i].count;
    members[i]->left_out = parts[i].count == 0 ? members[i]->left_out + 1 : 0;
    if (parts[i].count > 0) grant(*members[i], parts[i], true, now);
  }
}

// Where nobody has all of it, whoever lacks something waits for it. Else a slice that came to lie where its worker
// lacks something goes to the others, once it is cut again without that one.
std::vector<Interval> RoundsMode::cut(const OpenPass& of, std::vector<Member*>& members) {
  std::vector<Reach> reaches;
  reaches.reserve(members.size());
  for (const Member* member : members) reaches.push_back(reach_of(of, *member));
  const bool fits = std::ranges::any_of(reaches, &Reach::whole) && !std::ranges::all_of(reaches, &Reach::whole);
  for (;;) {
    if (fits) {
      const std::vector<std::size_t> order = placed(reaches);
      std::vector<Member*> sorted;
      std::vector<Reach> theirs;
      for (const std::size_t i : order) {
        sorted.push_back(members[i]);
        theirs.push_back(reaches[i]);
      }
      members.swap(sorted);
      reaches.swap(theirs);
    }
    std::vector<WorkerId> workers;
    workers.reserve(members.size());
    for (const Member* member : members) workers.push_back(member->worker);
    std::vector<std::uint64_t> counts(workers.size(), 0);
    run_.pace.split(PassKind::train, of.range.count, workers, false, counts);
    if (fits) fit(counts, reaches, unit(of));
    std::vector<Interval> parts = slices(counts, unit(of));
    std::size_t beyond = 0;
    while (beyond < parts.size() &&
           (!fits || parts[beyond].count == 0 || parts[beyond].within(reaches[beyond].interval())))
      ++beyond;
    if (beyond == parts.size()) return parts;
    members.erase(members.begin() + static_cast<std::ptrdiff_t>(beyond));
    reaches.erase(reaches.begin() + static_cast<std::ptrdiff_t>(beyond));
  }
}

void RoundsMode::share_rest(std::span<const Interval> free, Time now) {
  std::vector<Member*> members = able(now);
  leave_out_without(run_, members, [&](const Member* member) {
    return std::ranges::any_of(free, [&](const Interval& interval) { return !has(*member, interval); });
  });
  if (members.empty()) return;
  deadline_ = now;
  std::uint64_t total = 0;
  for (const Interval& interval : free) total += interval.count;
  const std::uint64_t each = (total + members.size() - 1) / members.size();
  const std::uint64_t most = std::max(each, unit(*work_.pass));
  std::size_t next = 0;
  for (Interval left : free) {
    while (left.count > 0 && next < members.size()) {
      const std::uint64_t granted = grant(*members[next++], {left.first, std::min(left.count, most)}, false, now);
      left = {left.first + granted, left.count - granted};
    }
  }
}

// Twice a round's own size is what every other round has at the most.
Interval RoundsMode::leasable(const OpenPass& of, Interval wanted) const noexcept {
  const std::uint64_t most = 2 * std::min(run_.config.global_batch, run_.config.train_samples);
  return first_part(of.spans, wanted, most, kLeasePiecesMax);
}

Lease& RoundsMode::add_lease(LeaseId id, const Member& to, Interval slice, Time now) {
  // What it has in hand already comes before.
  const std::uint64_t outstanding = work_.leases.outstanding(to.session) + slice.count;
  Lease& lease = work_.leases.add(id, to.session, to.worker, slice, run_.config.chunks);
  lease.ceiling = slice;
  lease.granted = now;
  // Who was late in this round has twice as long each time, or a wrong prediction would have no end.
  const auto late = std::ranges::count(work_.avoid, to.worker, &PassWork::Avoid::worker);
  const auto patience = std::int64_t{1} << std::min<std::int64_t>(late, kDoublingsMax);
  lease.deadline = now + patience * run_.pace.deadline(PassKind::train, to.worker, outstanding);
  deadline_ = std::max(deadline_, lease.deadline);
  return lease;
}

// What does not fit one lease stays free.
std::uint64_t RoundsMode::grant(const Member& to, Interval wanted, bool first_of_pass, Time now) {
  const Interval slice = leasable(*work_.pass, wanted);
  Lease& lease = add_lease(run_.next_lease(), to, slice, now);
  lease.first_of_pass = first_of_pass;
  say_grant(*work_.pass, to, lease.id, slice).first_of_pass = first_of_pass;
  return slice.count;
}

Action& RoundsMode::say_grant(const OpenPass& of, const Member& to, LeaseId lease, Interval slice) {
  Action& action = run_.act(ActionKind::grant, {ReasonCode::share, to.worker, slice.count, of.range.count});
  action.session = to.session;
  action.lease = lease;
  action.pass = of.id;
  action.positions = of.range;
  action.version = of.id.number;
  action.range = action.ceiling = slice;
  action.local_steps = of.local_steps;
  if (of.spans.size() > 1)
    for (const Owed& part : parts_of(of.spans, slice)) action.spans.push_back(in_order(part));
  return action;
}

}  // namespace motley::modes

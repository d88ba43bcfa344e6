#include "modes/rounds/round_slices.h"

#include <algorithm>
#include <utility>

#include "modes/doubtful.h"
#include "modes/rounds/round_plan.h"

namespace motley::modes {

using fleet::Member, fleet::MemberState;

// Positions that came to something unusual come first: not to who came to it.
std::vector<Member*> RoundSlices::members(const OpenPass& of, Time now) {
  std::vector<Member*> all;
  for (Member& member : run_.roster.all())
    if (member.streams && member.state == MemberState::member) all.push_back(&member);
  leave_out_without(run_, all, [&](const Member* member) { return lacks(of, *member); });
  leave_out_doubtful(all, run_, now);
  std::ranges::sort(all, {},
                    [this](const Member* member) { return std::pair(suspects_.has(member->worker), member->worker); });
  return all;
}

Reach RoundSlices::reach_of(const OpenPass& of, const Member& member) const {
  if (member.stock.all) return {.front = of.range.count, .back = of.range.count, .total = of.range.count};
  std::vector<StepRange> parts;
  parts.reserve(of.spans.size());
  for (const Owed& part : of.spans) parts.push_back(in_order(part));
  Reach found = reach(member.stock, parts);
  if (!found.whole() && suspects_.has(member.worker))
    found.front = 0;  // what is owed is not for who came to something unusual
  return found;
}

StepRange RoundSlices::in_order(const Owed& part) const {
  const StepRange step = run_.batches.range(part.step);
  return {step.epoch, step.order_first + part.first, part.count};
}

bool RoundSlices::has(const OpenPass& of, const Member& member, Interval positions) const {
  return member.stock.all || std::ranges::all_of(parts_of(of.spans, positions),
                                                 [&](const Owed& part) { return member.stock.has(in_order(part)); });
}

bool RoundSlices::lacks(const OpenPass& of, const Member& member) const {
  return !member.stock.all && reach_of(of, member).most() < unit(of);
}

// Where nobody has all of it, whoever lacks something waits for it. Else a slice that came to lie where its worker
// lacks something goes to the others, once it is cut again without that one.
std::vector<Interval> RoundSlices::cut(const OpenPass& of, std::vector<Member*>& members) {
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

// Twice a round's own size is what every other round has at the most.
Interval RoundSlices::leasable(const OpenPass& of, Interval wanted) const noexcept {
  const std::uint64_t most = 2 * std::min(run_.config.global_batch, run_.config.train_samples);
  return first_part(of.spans, wanted, most, kLeasePiecesMax);
}

Action& RoundSlices::say_grant(const OpenPass& of, const Member& to, LeaseId lease, Interval slice) {
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

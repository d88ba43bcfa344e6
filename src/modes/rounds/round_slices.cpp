#include "modes/rounds/round_slices.h"

#include <algorithm>
#include <utility>

#include "modes/doubtful.h"

namespace motley::modes {

using fleet::Member, fleet::MemberState;

// Positions that came to something unusual come first: not to who came to it.
std::vector<Member*> RoundSlices::members(Time now) {
  std::vector<Member*> all;
  for (Member& member : run_.roster.all())
    if (member.streams && member.state == MemberState::member) all.push_back(&member);
  leave_out_doubtful(all, run_, now);
  std::ranges::sort(all, {},
                    [this](const Member* member) { return std::pair(suspects_.has(member->worker), member->worker); });
  return all;
}

StepRange RoundSlices::in_order(const Owed& part) const {
  const StepRange step = run_.batches.range(part.step);
  return {step.epoch, step.order_first + part.first, part.count};
}

std::vector<Interval> RoundSlices::cut(const OpenPass& of, const std::vector<Member*>& members) {
  std::vector<WorkerId> workers;
  workers.reserve(members.size());
  for (const Member* member : members) workers.push_back(member->worker);
  std::vector<std::uint64_t> counts(workers.size(), 0);
  run_.performance.split(PassKind::train, of.range.count, workers, false, counts);
  return slices(counts, unit(of));
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

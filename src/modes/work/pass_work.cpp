#include "modes/work/pass_work.h"

#include <algorithm>

#include "base/assert.h"

namespace motley::modes {

void PassMachine::enter(PassState next) {
  MOTLEY_ASSERT(may_follow(state_, next));
  state_ = next;
}

bool PassMachine::may_follow(PassState from, PassState to) noexcept {
  switch (from) {
    case PassState::closed:
      return to == PassState::collecting;
    case PassState::collecting:
      return to == PassState::updating || to == PassState::closing;
    case PassState::updating:
      return to == PassState::closing;
    case PassState::closing:
      return to == PassState::closed;
  }
  return false;
}

Action& PassWork::act(ActionKind kind, Reason reason) {
  Action& action = run.act(kind, reason);
  if (pass) {
    action.pass = pass->id;
    action.positions = pass->range;
  }
  return action;
}

Action& PassWork::act_on(const Lease& lease, ActionKind kind, Reason reason) {
  Action& action = act(kind, reason);
  action.session = lease.session;
  action.worker = lease.worker;
  action.lease = lease.id;
  // What a codec left out of gradients before would tell a share from another worker's.
  action.first_of_pass = lease.first_of_pass && !lease.doubt.withheld;
  if (kind != ActionKind::taken || !action.first_of_pass) return action;
  for (ChunkId chunk = 0; chunk < coverage.chunks(); ++chunk)
    if (!coverage.accepted(lease.id, chunk)) action.discarded.push_back(chunk);
  return action;
}

bool PassWork::contested(Interval range) const noexcept {
  return disputed(range) ||
         std::ranges::any_of(avoid, [&](const Avoid& one) { return one.poisoned && one.range.overlaps(range); });
}

bool PassWork::disputed(Interval range) const noexcept {
  return std::ranges::any_of(avoid, [&](const Avoid& one) { return one.disputed && one.range.overlaps(range); });
}

bool PassWork::compared(Interval range) const noexcept {
  return std::ranges::any_of(claims, [&](const Claim& claim) { return claim.range == range; });
}

bool PassWork::doubted(Interval range, std::optional<WorkerId> by) const noexcept {
  return std::ranges::any_of(avoid, [&](const Avoid& one) {
    return one.unlikely && !one.confirmed && one.range.overlaps(range) && one.worker == by.value_or(one.worker);
  });
}

std::vector<Interval> PassWork::apart(std::vector<Interval> ranges) const {
  const auto cut = [&](std::uint64_t at) {
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      const Interval whole = ranges[i];
      if (at <= whole.first || at >= whole.end()) continue;
      ranges[i].count = at - whole.first;
      ranges.insert(ranges.begin() + static_cast<std::ptrdiff_t>(i) + 1, {at, whole.end() - at});
      return;
    }
  };
  for (const Avoid& one : avoid) {
    if (!one.disputed && !one.withheld) continue;
    cut(one.range.first);
    cut(one.range.end());
  }
  return ranges;
}

bool PassWork::avoids(WorkerId worker, Interval range) const noexcept {
  return std::any_of(avoid.begin(), avoid.end(),
                     [&](const Avoid& one) { return one.worker == worker && one.range.overlaps(range); });
}

}  // namespace motley::modes

#pragma once
// Who gets nothing of new work while somebody else is there.

#include <algorithm>

#include "modes/run.h"

namespace motley::modes {

/// Leaves out who lacks samples, unless that is everybody: whoever is asked for them waits for them. The first time it
/// is said of whom.
template <class Members, class Lacks>
void leave_out_without(Run& run, Members& members, Lacks&& lacks) {
  if (std::ranges::all_of(members, lacks)) return;
  for (const fleet::Member* member : members) {
    if (!lacks(member) || run.roster.find(member->session)->lacking) continue;
    run.roster.find(member->session)->lacking = true;
    run.act(ActionKind::warn, {.code = ReasonCode::lacks_samples, .worker = member->worker});
  }
  std::erase_if(members, lacks);
}

/// Leaves out who was not compared with others yet, and of whom nothing is heard, unless that is everybody.
template <class Members>
void leave_out_doubtful(Members& members, const Run& run, Time now) {
  const auto leave_out = [&](auto&& is) {
    if (!std::ranges::all_of(members, is)) std::erase_if(members, is);
  };
  leave_out([](const fleet::Member* member) { return member->unproven; });
  leave_out([&](const fleet::Member* member) { return run.is_unheard(*member, now); });
}

}  // namespace motley::modes

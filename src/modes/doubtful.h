#pragma once
// Who gets nothing of new work while somebody else is there.

#include <algorithm>

#include "modes/run.h"

namespace motley::modes {

/// Leaves out who lacks samples of `range`, unless that is everybody: whoever is asked for them waits for them.
template <class Members>
void leave_out_without(const StepRange& range, Members& members) {
  const auto lacks = [&](const fleet::Member* member) { return !member->stock.has(range); };
  if (!std::ranges::all_of(members, lacks)) std::erase_if(members, lacks);
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

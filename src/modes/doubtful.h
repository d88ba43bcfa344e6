#pragma once
// Who gets nothing of new work while somebody else is there.

#include <algorithm>

#include "modes/run.h"

namespace motley::modes {

/// Leaves out who was not compared with others yet, and of whom nothing is heard, unless that is everybody.
template <class Members>
void leave_out_doubtful(Members& members, const Run& run, Time now) {
  const auto leave_out = [&](auto&& is) {
    if (!std::ranges::all_of(members, is)) std::erase_if(members, is);
  };
  leave_out([](const fleet::Member* member) { return member->shown.unproven; });
  leave_out([&](const fleet::Member* member) { return run.is_unheard(*member, now); });
}

}  // namespace motley::modes

#pragma once
// When numbers that are not finite are the run's, and not a worker's.

#include <algorithm>
#include <cstdint>
#include <span>

#include "fleet/roster.h"

namespace motley::modes {

/// A broken device sends NaN, and so may whoever wants the run to end. The head's own device decides where there is
/// one, with another; else all who are here must say so, or three. Who was excluded since has no say.
[[nodiscard]] inline bool enough_say_so(const fleet::Roster& roster, std::span<const fleet::WorkerId> said) {
  constexpr std::size_t kEnough = 3;
  std::size_t members = 0, say_so = 0;
  bool local = false, local_says_so = false;
  for (const fleet::Member& member : roster.all()) {
    // Who is about to take part will be asked as well.
    if (member.state == fleet::MemberState::yielding || member.state == fleet::MemberState::excluded) continue;
    const bool says_so = std::ranges::find(said, member.worker) != said.end();
    ++members;
    say_so += says_so;
    local |= member.local;
    local_says_so |= member.local && says_so;
  }
  return local ? local_says_so && say_so >= std::min<std::size_t>(2, members)
               : members > 0 && say_so >= std::min(kEnough, members);
}

}  // namespace motley::modes

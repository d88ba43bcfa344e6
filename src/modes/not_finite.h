#pragma once
// When numbers that are not finite are the run's, and not a worker's.

#include <algorithm>
#include <cstdint>
#include <span>

#include "fleet/roster.h"

namespace motley::modes {

/// A broken device sends NaN, and so may whoever wants the run to end. The head's own device decides where there is
/// one, with another; else all who are here must say so, or three.
[[nodiscard]] inline bool enough_say_so(const fleet::Roster& roster, std::span<const fleet::WorkerId> said) {
  constexpr std::size_t kEnough = 3;
  std::size_t members = 0;
  bool local = false, local_said = false;
  for (const fleet::Member& member : roster.all()) {
    // Who is about to take part will be asked as well.
    if (member.state == fleet::MemberState::yielding || member.state == fleet::MemberState::excluded) continue;
    ++members;
    local |= member.local;
    local_said |= member.local && std::ranges::find(said, member.worker) != said.end();
  }
  return local ? local_said && said.size() >= std::min<std::size_t>(2, members)
               : said.size() >= std::min(kEnough, members);
}

}  // namespace motley::modes

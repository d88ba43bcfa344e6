#include "fleet/member.h"

#include "base/assert.h"

namespace motley::fleet {

void MemberMachine::enter(MemberState next) {
  MOTLEY_ASSERT(may_follow(state_, next));
  state_ = next;
}

bool MemberMachine::may_follow(MemberState from, MemberState to) noexcept {
  using enum MemberState;
  switch (from) {
    case loading:
      return to == syncing || to == excluded;
    case syncing:  // again, where it lost weights that were under way
      return to == syncing || to == calibrating || to == member || to == parked || to == yielding || to == excluded;
    case calibrating:
    case member:  // again, where it was alone and others take part again
    case parked:
      return to == syncing || to == member || to == parked || to == yielding || to == excluded;
    case yielding:
      return to == yielding || to == excluded;
    case excluded:
      return false;
  }
  return false;
}

}  // namespace motley::fleet

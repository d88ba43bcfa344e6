#pragma once
// Two workers, one of which is about to make trouble.

#include "fixture.h"

namespace motley::engine {

class CoordinatorDisturbed : public CoordinatorTest {
 protected:
  /// Two workers, 8 positions each.
  void two() {
    options.shares = {1, 1, 1, 1};
    options.min_workers = 2;
    make();
    a = &join(1);
    b = &join(2);
  }

  /// Every position of the open grants of a peer.
  static std::uint64_t positions(const Peer& peer) {
    std::uint64_t sum = 0;
    for (const wire::Grant& grant : peer.grants) sum += grant.count;
    return sum;
  }

  void lose(Peer& peer) {
    coordinator->session_closed(peer.session, "the connection was reset", now);
    output.closed[peer.session] = {};
    peer.grants.clear();
    collect();
  }

  Peer* a = nullptr;
  Peer* b = nullptr;
};

}  // namespace motley::engine

// The part of Links that remembers machines, so that they can be woken.

#include "runtime/head/links.h"

namespace motley::runtime {

void Links::meet(const Link& link) {
  const transport::PeerIdentity& peer = link.connection->peer();
  const auto card = transport::hardware_address_from(link.hello->hardware_address);
  if (peer.same_machine || !card || met_.size() == MachineStore::kMachinesMax) return;
  met_.push_back({peer.spki, link.hello->machine, *card, peer.address.substr(0, peer.address.rfind(':'))});
}

void Links::keep_met(bool at_once) {
  constexpr Duration kEvery = std::chrono::seconds(1);
  if (met_.empty() || (!at_once && now() - kept_met_ < kEvery)) return;
  kept_met_ = now();
  (void)MachineStore(options_.machines).keep(met_);  // not worth an error: it is met again
  met_.clear();
}

}  // namespace motley::runtime

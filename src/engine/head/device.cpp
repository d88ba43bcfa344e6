// Where steps are made: on the host, or on the device of a worker of this process.

#include <algorithm>
#include <utility>

#include "engine/head/impl.h"

namespace motley::engine {

// Before a pass: on the head's device as soon as others take part, while it is here, if there is room.
void Coordinator::Impl::choose_place() {
  if (on_device.device() != nullptr) {
    if (sessions.find(device_session) == nullptr) here(on_device.offload());
    return;
  }
  if (device_refused || options.local_steps > 0 || server.outside()) return;
  std::shared_ptr<DeviceServer> device;
  std::size_t others = 0;
  for (const fleet::Member& member : machine.members().all()) {
    if (member.state != fleet::MemberState::member) continue;
    std::shared_ptr<DeviceServer> found;
    if (sessions.at(member.session).local()) found = output.device_server(member.session);
    if (!found) {
      ++others;
      continue;
    }
    if (device) return;  // of two, the gradient of one has to leave it
    device = std::move(found);
    device_session = member.session;
  }
  if (device && others > 0) device_refused = !on_device.move_to(std::move(device)).ok();
}

// The step as far as its sums, with their update where the device makes that, too.
bool Coordinator::Impl::make_on_device() {
  const modes::Coverage& coverage = machine.coverage();
  std::optional<Error> left;
  if (!here(on_device.make(coverage.weight() > 0 ? coverage.weight() : 1, coverage.positions(), left))) return false;
  if (left) {
    device_refused = true;
    output.warning("the server goes on in the memory of the host, since that of the device did not do: " +
                   left->message);
  }
  return true;
}

// Else what the optimizer knows is lost with the device.
bool Coordinator::Impl::here(const Status& brought) {
  if (brought) return true;
  failed = true;
  output.failed({brought.error().code, "the optimizer's state was lost with the device: " + brought.error().message,
                 "go on from the last checkpoint with --resume"});
  return false;
}

Status Coordinator::download_state() { return impl_->on_device.download_state(); }

}  // namespace motley::engine

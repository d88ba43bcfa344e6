#include "runtime/worker/block_link.h"

#include <utility>

#include "runtime/lanes.h"
#include "transport/crypto.h"

namespace motley::runtime {

BlockLink::BlockLink(fleet::JoinToken token, const std::string& name, transport::Identity identity)
    : asking_([](std::span<const std::byte> bytes) { return transport::sha256(bytes); }),
      link_(std::move(token), name, std::move(identity), kFiles, mutex_, *this) {}

void BlockLink::connected() {
  tell(Connected{});
  if (offer_) link_.send(wire::Want{.offer = *offer_, .sha256 = {}});
  for (const wire::Want& want : asking_.restart()) link_.send(want);
}

bool BlockLink::hear(const wire::Message& message) {
  if (std::holds_alternative<wire::Heartbeat>(message)) {
    if (events_.empty()) tell(Waits{});
    return true;
  }
  const auto* offered = std::get_if<wire::Offered>(&message);
  if (offered == nullptr || offer_ != offered->offer) return false;
  offer_.reset();
  tell(*offered);
  return true;
}

void BlockLink::take(const wire::Frame& frame) {
  Result<blocks::Asking::Added> added = asking_.add(frame);
  if (!added) return link_.end(Refused{added.error()});
  if (added->again) link_.send(*added->again);
  if (added->whole) tell(Content{*added->whole, std::move(added->content)});
}

void BlockLink::ended(HeadLink::End end) {
  std::visit([this](auto& how) { tell(std::move(how)); }, end);
}

void BlockLink::tell(Event event) {
  events_.push_back(std::move(event));
  changed_.notify_all();
}

void BlockLink::ask(std::uint64_t offer) {
  const std::lock_guard lock(mutex_);
  offer_ = offer;
  link_.send(wire::Want{.offer = offer, .sha256 = {}});
}

void BlockLink::want(const blocks::Hash& hash, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (const std::optional<wire::Want> want = asking_.want(hash, bytes)) link_.send(*want);
}

std::optional<BlockLink::Event> BlockLink::take() {
  if (events_.empty()) return std::nullopt;
  Event first = std::move(events_.front());
  events_.pop_front();
  return first;
}

}  // namespace motley::runtime

#include "runtime/worker/weights_link.h"

#include "engine/coordinator.h"

namespace motley::runtime {

std::optional<WeightsLink::Inbox::Entry> WeightsLink::Inbox::take() {
  const std::lock_guard lock(mutex_);
  if (entries_.empty()) return std::nullopt;
  Entry first = std::move(entries_.front());
  entries_.pop_front();
  if (const auto* frame = std::get_if<wire::Frame>(&first.second)) untaken_.take(*frame);
  return first;
}

bool WeightsLink::Inbox::put(std::uint64_t number, const wire::Frame& frame) {
  if (!untaken_.put(frame)) return false;
  tell(number, frame);
  return true;
}

void WeightsLink::Inbox::tell(std::uint64_t number, Event event) {
  entries_.emplace_back(number, std::move(event));
  told_();
}

WeightsLink::WeightsLink(fleet::JoinToken token, const std::string& name, transport::Identity identity, Inbox& inbox,
                         std::uint64_t number)
    : inbox_(inbox),
      number_(number),
      link_(std::move(token), name, std::move(identity), engine::kChain, PeerLink::To::other, inbox.mutex_, *this) {}

// That it is still there.
bool WeightsLink::hear(const wire::Message& message) { return std::holds_alternative<wire::Heartbeat>(message); }

void WeightsLink::take(const wire::Frame& frame) {
  if (frame.header.type != wire::FrameType::weights)
    return link_.end(PeerLink::Refused{{ErrorCode::protocol, "expected weights, found another frame", ""}});
  if (!inbox_.put(number_, frame)) link_.end(PeerLink::Broken{"weights came faster than they were taken"});
}

void WeightsLink::ended(PeerLink::End end) {
  std::visit([this](auto& how) { inbox_.tell(number_, std::move(how)); }, end);
}

void WeightsLink::send_gradient(const wire::Frame& frame) {
  const std::lock_guard lock(inbox_.mutex_);
  link_.send(frame, transport::Priority::gradients);
}

}  // namespace motley::runtime

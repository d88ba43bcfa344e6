#include "runtime/worker/block_link.h"

#include <utility>

#include "runtime/lanes.h"
#include "transport/crypto.h"

namespace motley::runtime {
namespace {

constexpr std::size_t kUntoldMax = 256;  // events that nobody took, of what the head may say unasked

}  // namespace

BlockLink::BlockLink(fleet::JoinToken token, const std::string& name, transport::Identity identity,
                     std::shared_ptr<Inbox> inbox, std::uint64_t number)
    : inbox_(std::move(inbox)),
      number_(number),
      asking_([](std::span<const std::byte> bytes) { return transport::sha256(bytes); },
              is_head() ? blocks::kAttemptsMax : 1),
      link_(std::move(token), name, std::move(identity), kFiles, is_head() ? PeerLink::To::head : PeerLink::To::other,
            inbox_->mutex, *this) {
  asking_.set_hurries(!is_head());  // who was named knows it; a head says so
}

void BlockLink::connected() {
  tell(Connected{});
  if (offer_) link_.send(wire::Want{.offer = *offer_, .sha256 = {}});
  for (const wire::Want& want : asking_.restart()) link_.send(want);
}

bool BlockLink::hear(const wire::Message& message) {
  if (std::holds_alternative<wire::Heartbeat>(message)) {
    if (inbox_->events.empty()) tell(Waits{});
    return true;
  }
  if (is_head() && inbox_->events.size() < kUntoldMax) {
    if (const auto* guest = std::get_if<wire::Guest>(&message)) {
      tell(*guest);
      return true;
    }
    if (const auto* source = std::get_if<wire::Source>(&message)) {
      tell(*source);
      return true;
    }
  }
  const auto* offered = std::get_if<wire::Offered>(&message);
  if (offered == nullptr || offer_ != offered->offer) return false;
  offer_.reset();
  asking_.set_hurries(offered->hurries);
  tell(*offered);
  return true;
}

void BlockLink::take(const wire::Frame& frame) {
  Result<blocks::Asking::Added> added = asking_.add(frame);
  if (!added) return link_.end(Refused{added.error()});
  if (added->again) link_.send(*added->again);
  if (added->whole) tell(Content{*added->whole, std::move(added->content)});
}

void BlockLink::ended(PeerLink::End end) {
  std::visit([this](auto& how) { tell(std::move(how)); }, end);
}

void BlockLink::tell(Event event) {
  inbox_->events.emplace_back(number_, std::move(event));
  inbox_->changed.notify_all();
}

void BlockLink::send(const wire::Message& message) {
  const std::lock_guard lock(inbox_->mutex);
  link_.send(message);
}

void BlockLink::ask(std::uint64_t offer) {
  const std::lock_guard lock(inbox_->mutex);
  offer_ = offer;
  link_.send(wire::Want{.offer = offer, .sha256 = {}});
}

void BlockLink::want(const blocks::Hash& hash, std::size_t bytes, bool waited_for) {
  const std::lock_guard lock(inbox_->mutex);
  if (const std::optional<wire::Want> want = asking_.want(hash, bytes, waited_for)) link_.send(*want);
}

std::optional<BlockLink::Event> BlockLink::take() {
  if (inbox_->events.empty()) return std::nullopt;
  Event first = std::move(inbox_->events.front().second);
  inbox_->events.pop_front();
  return first;
}

}  // namespace motley::runtime

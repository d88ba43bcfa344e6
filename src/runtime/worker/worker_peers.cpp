// The part of WorkerHost that deals with other workers.

#include <utility>

#include "runtime/worker/worker_host.h"

namespace motley::runtime {
namespace {

// What one that follows may leave unread: the weights of some steps.
constexpr std::size_t kUnreadModels = 4;
constexpr std::size_t kUnreadBytesLeast = 64U << 20;

}  // namespace

void WorkerHost::let_in(const wire::Guest& guest) {
  if (!peers_) return;
  if (guest.secret.empty()) return peers_->let_out(guest.id);
  if (const Result<wire::Source> source = peers_->let_in(guest)) worker_->opened(*source);
}

void WorkerHost::follow(const wire::Source& source) {
  if (!peers_ || !peers_->follow(source)) worker_->source_lost(source.id);
}

void WorkerHost::unfollow(std::uint64_t id) {
  if (peers_) peers_->unfollow(id);
}

void WorkerHost::hand_on(const wire::Frame& frame) {
  const std::size_t model = layout_.flat_elements() * sizeof(float);
  if (peers_) peers_->hand_on(frame, kUnreadBytesLeast + kUnreadModels * model);
}

void WorkerHost::hand_up(std::uint64_t source, const wire::Frame& frame) {
  if (peers_) peers_->hand_up(source, frame);
}

void WorkerHost::on_peers() {
  while (peers_) {
    const std::optional<WeightsPeers::FromGuest> frame = peers_->take_from_guest();
    if (!frame) break;
    worker_->from_guest(frame->first, frame->second, now());
  }
  while (peers_) {
    const std::optional<WeightsPeers::Event> event = peers_->take();
    if (!event) return;
    const auto& [source, what] = *event;
    if (const auto* frame = std::get_if<wire::Frame>(&what)) {
      worker_->from_source(source, *frame, now());
    } else if (std::holds_alternative<PeerLink::Connected>(what)) {
      worker_->follows(source, now());
    } else if (std::holds_alternative<PeerLink::Broken>(what) || std::holds_alternative<PeerLink::Refused>(what)) {
      worker_->source_lost(source);
    }
  }
}

}  // namespace motley::runtime

#include "runtime/worker/weights_peers.h"

#include "engine/coordinator.h"

namespace motley::runtime {

WeightsPeers::WeightsPeers(fleet::JoinToken token, std::string name, transport::Identity identity,
                           std::function<void()> came)
    : token_(std::move(token)),
      name_(std::move(name)),
      identity_(std::move(identity)),
      came_(std::move(came)),
      inbox_(came_),
      door_(token_, identity_, engine::kChain, *this) {}

bool WeightsPeers::follow(const wire::Source& source) {
  Result<fleet::JoinToken> token = token_for(source, token_);
  if (!token || source.id == 0) return false;
  end_link();
  link_ = std::make_unique<WeightsLink>(std::move(*token), name_, identity_, inbox_, source.id);
  followed_ = source.id;
  link_->dial();
  return true;
}

void WeightsPeers::unfollow(std::uint64_t id) {
  if (followed_ != id) return;
  end_link();
  followed_ = 0;
}

// Its transport says farewell for a second or two, longest where the other side is cut off, and heartbeats go on.
void WeightsPeers::end_link() {
  if (!link_) return;
  ending_ = std::async(std::launch::async, [link = std::move(link_)]() mutable { link.reset(); });
}

void WeightsPeers::close() {
  unfollow(followed_);
  door_.dismiss_all();
}

void WeightsPeers::hand_on(const wire::Frame& frame, std::size_t unread_max) {
  const std::lock_guard lock(mutex_);
  if (guests_.empty()) return;
  wire::FrameHeader header = frame.header;
  header.run = token_.run;
  header.fence = header.pass = 0;
  header.order = 0;
  const wire::Frame sent = wire::seal(header, frame.body, token_.plaintext);
  for (const auto& [id, guest] : guests_) {
    guest.connection->send(sent, transport::Priority::weights);
    if (guest.connection->queued_bytes() > unread_max) guest.connection->close();
  }
}

void WeightsPeers::hand_up(std::uint64_t source, const wire::Frame& frame) {
  if (followed_ != source || !link_) return;
  wire::FrameHeader header = frame.header;
  header.run = token_.run;
  header.fence = 0;
  link_->send_gradient(wire::seal(header, frame.body, token_.plaintext));
}

std::size_t WeightsPeers::guests() {
  const std::lock_guard lock(mutex_);
  return guests_.size();
}

std::optional<WeightsPeers::Event> WeightsPeers::take() {
  while (std::optional<Event> next = inbox_.take())
    if (next->first == followed_) return next;
  return std::nullopt;
}

std::optional<WeightsPeers::FromGuest> WeightsPeers::take_from_guest() {
  const std::lock_guard lock(mutex_);
  if (from_guests_.empty()) return std::nullopt;
  FromGuest first = std::move(from_guests_.front());
  from_guests_.pop_front();
  untaken_.take(first.second);
  return first;
}

void WeightsPeers::open(PeerDoor::LinkId id, std::uint64_t guest, std::shared_ptr<transport::Connection> connection) {
  const std::lock_guard lock(mutex_);
  guests_[id] = {guest, std::move(connection)};
}

Status WeightsPeers::take(PeerDoor::LinkId id, const wire::Frame& frame) {
  const bool gradient =
      frame.header.type == wire::FrameType::gradient || frame.header.type == wire::FrameType::statistic;
  if (!gradient) return PeerDoor::Room::take(id, frame);
  {
    const std::lock_guard lock(mutex_);
    if (!untaken_.put(frame)) return Error{ErrorCode::protocol, "gradients came faster than they were taken", ""};
    from_guests_.emplace_back(guests_.at(id).number, frame);
  }
  came_();
  return {};
}

Status WeightsPeers::hear(PeerDoor::LinkId /*id*/, const wire::Message& message) {
  return Error{ErrorCode::protocol, "expected nothing, found " + std::string(wire::name_of(message)), ""};
}

void WeightsPeers::close(PeerDoor::LinkId id) {
  const std::lock_guard lock(mutex_);
  guests_.erase(id);
}

}  // namespace motley::runtime

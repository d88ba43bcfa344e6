#include "runtime/worker/peer_door.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/auth.h"
#include "runtime/lanes.h"
#include "transport/addresses.h"
#include "wire/limits.h"

namespace motley::runtime {
namespace {

constexpr std::size_t kQuestionBytesMax = 4096;  // of a control frame: Hello is the longest

fleet::JoinToken door_token(const fleet::JoinToken& of_head, const transport::Identity& identity) {
  fleet::JoinToken token;
  token.plaintext = of_head.plaintext;
  token.run = of_head.run;
  token.spki = identity.spki;
  return token;
}

}  // namespace

class PeerDoor::Receiver final : public transport::Receiver {
 public:
  Receiver(PeerDoor& door, LinkId id) : door_(door), id_(id) {}
  void on_frame(wire::Frame frame) override { door_.on_frame(id_, frame); }
  void on_closed(Error /*error*/) override { door_.on_closed(id_); }

 private:
  PeerDoor& door_;
  const LinkId id_;
};

PeerDoor::PeerDoor(const fleet::JoinToken& token, transport::Identity identity, std::string feature, Room& room)
    : token_(door_token(token, identity)), identity_(std::move(identity)), feature_(std::move(feature)), room_(room) {}

Status PeerDoor::open() {
  if (listener_) return {};
  if (!tcp_) tcp_ = std::make_unique<transport::Tcp>(tcp_options(token_, identity_));
  Result<std::unique_ptr<transport::Listener>> listening =
      tcp_->listen({"0.0.0.0", 0}, [this](const auto& connection) { accept(connection); });
  if (!listening) return listening.error();
  listener_ = std::move(*listening);
  return {};
}

Result<wire::Source> PeerDoor::admit(const wire::Guest& guest) {
  const bool right = guest.id != 0 && guest.secret.size() == wire::kGuestSecretBytes &&
                     guest.spki.size() == (token_.plaintext ? 0 : wire::kHashBytesMax);
  if (!right)
    return Error{ErrorCode::protocol, "the head sent an invalid description of a machine that is to connect here",
                 "install the same version of motley on both machines"};
  if (Status opened = open(); !opened) return opened.error();
  const std::lock_guard lock(mutex_);
  if (guests_.size() >= kGuestsMax && !guests_.contains(guest.id))
    return Error{ErrorCode::busy, "at most " + std::to_string(kGuestsMax) + " machines come to another at once", ""};
  guests_[guest.id] = guest;
  wire::Source source{
      .id = guest.id, .port = listener_->port(), .addresses = transport::local_addresses(), .secret = {}, .spki = {}};
  if (source.addresses.size() >= fleet::JoinToken::kAddressesMax)
    source.addresses.resize(fleet::JoinToken::kAddressesMax - 1);  // the head puts in front the one that it sees
  return source;
}

void PeerDoor::dismiss(std::uint64_t id) {
  std::vector<LinkId> ending;
  bool empty = false;
  {
    const std::lock_guard lock(mutex_);
    guests_.erase(id);
    for (const auto& [number, link] : links_)
      if (link.guest == id) ending.push_back(number);
    for (const LinkId number : ending) end(number, {"revoked", {}, "the head lets this machine in no longer", {}});
    empty = guests_.empty();
  }
  if (empty) dismiss_all();
}

void PeerDoor::dismiss_all() {
  {
    const std::lock_guard lock(mutex_);
    guests_.clear();
    while (!links_.empty()) end(links_.begin()->first, {"done", {}, "this machine hands nothing on any more", {}});
  }
  listener_.reset();
}

void PeerDoor::accept(const std::shared_ptr<transport::Connection>& connection) {
  LinkId id = 0;
  {
    const std::lock_guard lock(mutex_);
    id = next_++;
    links_[id].connection = connection;
  }
  connection->start(std::make_shared<Receiver>(*this, id));
}

void PeerDoor::on_closed(LinkId id) {
  const std::lock_guard lock(mutex_);
  links_.erase(id);
  room_.close(id);
}

void PeerDoor::on_frame(LinkId id, const wire::Frame& frame) {
  const std::lock_guard lock(mutex_);
  const auto link = links_.find(id);
  if (link == links_.end()) return;
  const bool right = frame.header.type == wire::FrameType::control && frame.header.run == token_.run &&
                     frame.body.size() <= kQuestionBytesMax;
  if (!right) return end(id, {"protocol", "a control message of this run", "another frame", {}});
  const Result<wire::Message> message = wire::decode(frame.body.bytes());
  if (!message) return end(id, {"protocol", {}, message.error().message, {}});
  on_message(id, link->second, *message);
}

void PeerDoor::on_message(LinkId id, Link& link, const wire::Message& message) {
  const wire::Bye stranger{"wrong-token", "a machine that the head named", "another", {}};
  if (const auto* hello = std::get_if<wire::Hello>(&message); hello != nullptr && link.guest == 0) {
    const bool wants = std::ranges::count(hello->features, feature_) > 0;
    if (hello->protocol != wire::kProtocolVersion || !wants || !guests_.contains(hello->token_id))
      return end(id, stranger);
    link.guest = hello->token_id;
  } else if (const auto* proof = std::get_if<wire::Proof>(&message); proof != nullptr && link.guest && !link.proven) {
    if (!is_proof(link, *proof)) return end(id, stranger);
    std::vector<LinkId> before;  // of the same guest, who has one connection
    for (const auto& [number, other] : links_)
      if (number != id && other.guest == link.guest && other.proven) before.push_back(number);
    for (const LinkId number : before) end(number, {"lost", {}, "it came again", {}});
    link.proven = true;
    link.connection->mark_proven();
    fleet::JoinToken token = token_;
    token.id = link.guest;
    std::ranges::copy(guests_.at(link.guest).secret, token.secret.begin());
    const wire::ProofReply reply{proof_mac(token, "head", link.connection->peer(), identity_.spki, Side::head)};
    link.connection->send(control_frame(token_.run, reply), transport::Priority::control);
    room_.open(id, link.guest, link.connection);
  } else if (!link.proven) {
    end(id, {"protocol", "Hello, Proof", std::string(wire::name_of(message)), {}});
  } else if (Status heard = room_.hear(id, message); !heard) {
    end(id, {"protocol", {}, heard.error().message, {}});
  }
}

bool PeerDoor::is_proof(const Link& link, const wire::Proof& proof) const {
  const auto found = guests_.find(link.guest);
  if (found == guests_.end()) return false;
  const transport::PeerIdentity& peer = link.connection->peer();
  if (!token_.plaintext && !std::ranges::equal(peer.spki, found->second.spki)) return false;
  fleet::JoinToken token = token_;
  token.id = link.guest;
  std::ranges::copy(found->second.secret, token.secret.begin());
  return proof_holds(proof.mac, token, "join", peer, identity_.spki, Side::head);
}

void PeerDoor::end(LinkId id, const wire::Bye& bye) {
  const auto found = links_.find(id);
  const std::shared_ptr<transport::Connection> connection = std::move(found->second.connection);
  links_.erase(found);
  room_.close(id);
  connection->send(control_frame(token_.run, bye), transport::Priority::control);
  connection->close();
}

}  // namespace motley::runtime

#include "runtime/worker/block_link.h"

#include <utility>

#include "runtime/auth.h"
#include "runtime/head/door.h"
#include "runtime/inputs.h"
#include "runtime/lanes.h"
#include "transport/crypto.h"
#include "wire/limits.h"

namespace motley::runtime {
namespace {

constexpr std::chrono::milliseconds kDialTimeout{5000};

}  // namespace

class BlockLink::Receiver final : public transport::Receiver {
 public:
  Receiver(BlockLink& link, std::uint64_t generation) : link_(link), generation_(generation) {}
  void on_frame(wire::Frame frame) override { link_.on_frame(generation_, frame); }
  void on_closed(Error error) override { link_.on_closed(generation_, error.message); }

 private:
  BlockLink& link_;
  const std::uint64_t generation_;
};

BlockLink::BlockLink(fleet::JoinToken token, const std::string& name, transport::Identity identity)
    : token_(std::move(token)),
      identity_(std::move(identity)),
      asking_([](std::span<const std::byte> bytes) { return transport::sha256(bytes); }),
      tcp_(tcp_options(token_, identity_)) {
  Device none;
  none.name = kFiles;
  hello_ = hello_for(none, name, 0);
  hello_.features = {kFiles};
  hello_.token_id = token_.id;
}

BlockLink::~BlockLink() {
  std::shared_ptr<transport::Connection> connection;
  {
    const std::lock_guard lock(mutex_);
    ++generation_;
    connection = std::move(connection_);
  }
  if (connection != nullptr) connection->close();
}

void BlockLink::dial() {
  std::shared_ptr<transport::Connection> old;
  std::uint64_t generation = 0;
  {
    const std::lock_guard lock(mutex_);
    generation = ++generation_;
    old = std::move(connection_);
    proven_ = done_ = false;
  }
  if (old != nullptr) old->close();
  std::optional<transport::Digest> pin;
  if (!token_.plaintext) pin = token_.spki;
  tcp_.connect(endpoints(token_), pin, kDialTimeout,
               [this, generation](auto result) { on_dialled(generation, std::move(result)); });
}

void BlockLink::on_dialled(std::uint64_t generation, Result<std::shared_ptr<transport::Connection>> result) {
  std::shared_ptr<transport::Connection> connection;
  {
    const std::lock_guard lock(mutex_);
    if (generation != generation_) return;
    if (!result) {
      if (result.error().code == ErrorCode::refused) return tell(Refused{result.error()});
      return tell(Broken{result.error().message});
    }
    connection = connection_ = std::move(*result);
  }
  connection->start(std::make_shared<Receiver>(*this, generation));
  connection->send(control_frame(token_.run, hello_), transport::Priority::control);
  const wire::Proof proof{proof_mac(token_, "join", connection->peer(), identity_.spki, Side::joiner)};
  connection->send(control_frame(token_.run, proof), transport::Priority::control);
}

void BlockLink::on_frame(std::uint64_t generation, const wire::Frame& frame) {
  const std::lock_guard lock(mutex_);
  if (generation != generation_) return;
  if (frame.header.type == wire::FrameType::control) {
    const Result<wire::Message> message = wire::decode(frame.body.bytes());
    if (!message) return end(Refused{message.error()});
    return on_message(*message);
  }
  if (!proven_) return end(Refused{{ErrorCode::protocol, "the head sent data before its proof", ""}});
  Result<blocks::Asking::Added> added = asking_.add(frame);
  if (!added) return end(Refused{added.error()});
  if (added->again) send_want(*added->again);
  if (added->whole) {
    ++untaken_;
    tell(Content{*added->whole, std::move(added->content)});
  }
}

void BlockLink::on_message(const wire::Message& message) {
  if (const auto* bye = std::get_if<wire::Bye>(&message)) {
    done_ = bye->code == "done";
    if (bye->code == "done" || bye->code == "lost" || bye->code == "full" || bye->code == "busy") {
      return end(Broken{bye->found, done_});
    }
    return end(Refused{{bye->code == "data" ? ErrorCode::mismatch : ErrorCode::refused,
                        bye->expected.empty() ? bye->found : "expected " + bye->expected + ", found " + bye->found,
                        bye->hint}});
  }
  if (const auto* reply = std::get_if<wire::ProofReply>(&message); reply != nullptr && !proven_) {
    if (!proof_holds(reply->mac, token_, "head", connection_->peer(), identity_.spki, Side::joiner)) {
      return end(
          Refused{{ErrorCode::refused, "the machine that answered could not prove that it knows the token's secret",
                   "ask for a new token on the head"}});
    }
    return proven();
  }
  if (std::holds_alternative<wire::Heartbeat>(message) && proven_) {
    if (events_.empty()) tell(Waits{});
    return;
  }
  const auto* offered = std::get_if<wire::Offered>(&message);
  if (offered == nullptr || !proven_ || offer_ != offered->offer) {
    return end(Refused{{ErrorCode::protocol, "the head answered with " + std::string(wire::name_of(message)),
                        "install the same version of motley on both machines"}});
  }
  offer_.reset();
  asking_.set_hurries(offered->hurries);
  tell(*offered);
}

void BlockLink::proven() {
  proven_ = true;
  tell(Connected{});
  if (offer_) send_want({.offer = *offer_, .sha256 = {}});
  for (const wire::Want& want : asking_.restart()) send_want(want);
}

void BlockLink::on_closed(std::uint64_t generation, const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (generation == generation_) end(Broken{why, done_});
}

void BlockLink::tell(Event event) {
  events_.push_back(std::move(event));
  changed_.notify_all();
}

void BlockLink::end(Event event) {
  ++generation_;
  if (connection_ != nullptr) connection_->close();
  connection_.reset();
  proven_ = false;
  tell(std::move(event));
}

void BlockLink::send_want(const wire::Want& want) {
  connection_->send(control_frame(token_.run, want), transport::Priority::control);
}

void BlockLink::ask(std::uint64_t offer) {
  const std::lock_guard lock(mutex_);
  offer_ = offer;
  if (proven_) send_want({.offer = offer, .sha256 = {}});
}

bool BlockLink::has_room() const {
  const std::lock_guard lock(mutex_);
  return asking_.open() + untaken_ < wire::kWantsMax && asking_.has_room();
}

void BlockLink::want(const blocks::Hash& hash, std::size_t bytes, bool waited_for) {
  const std::lock_guard lock(mutex_);
  const std::optional<wire::Want> want = asking_.want(hash, bytes, waited_for);
  if (want && proven_) send_want(*want);
}

std::optional<BlockLink::Event> BlockLink::take() {
  if (events_.empty()) return std::nullopt;
  Event first = std::move(events_.front());
  events_.pop_front();
  if (std::holds_alternative<Content>(first)) --untaken_;
  return first;
}

}  // namespace motley::runtime

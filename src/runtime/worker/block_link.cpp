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
constexpr std::size_t kUntakenWeightsMax = 256U << 20;  // of weights that wait to be taken, with what holds them
constexpr std::size_t kUntoldMax = 256;                 // events that nobody took, of what the head may say unasked

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

BlockLink::BlockLink(fleet::JoinToken token, const std::string& name, transport::Identity identity,
                     std::shared_ptr<Inbox> inbox, std::uint64_t number, const std::string& feature)
    : token_(std::move(token)),
      identity_(std::move(identity)),
      inbox_(std::move(inbox)),
      number_(number),
      asking_([](std::span<const std::byte> bytes) { return transport::sha256(bytes); },
              is_head() ? blocks::kAttemptsMax : 1),
      tcp_(tcp_options(token_, identity_)) {
  Device none;
  none.name = feature;
  hello_ = hello_for(none, name, 0);
  hello_.features = {feature};
  hello_.token_id = token_.id;
  asking_.set_hurries(!is_head());  // who was named knows it; a head says so
}

BlockLink::~BlockLink() {
  std::shared_ptr<transport::Connection> connection;
  {
    const std::lock_guard lock(inbox_->mutex);
    ++generation_;
    connection = std::move(connection_);
  }
  if (connection != nullptr) connection->close();
}

void BlockLink::dial() {
  std::shared_ptr<transport::Connection> old;
  std::uint64_t generation = 0;
  {
    const std::lock_guard lock(inbox_->mutex);
    generation = ++generation_;
    old = std::move(connection_);
    proven_ = done_ = false;
  }
  if (old != nullptr) old->close();
  std::optional<transport::Digest> pin;
  if (!token_.plaintext) pin = token_.spki;
  tcp_.connect(is_head() ? endpoints(token_) : network_endpoints(token_), pin, kDialTimeout,
               [this, generation](auto result) { on_dialled(generation, std::move(result)); });
}

void BlockLink::on_dialled(std::uint64_t generation, Result<std::shared_ptr<transport::Connection>> result) {
  std::shared_ptr<transport::Connection> connection;
  {
    const std::lock_guard lock(inbox_->mutex);
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
  const std::lock_guard lock(inbox_->mutex);
  if (generation != generation_) return;
  if (frame.header.type == wire::FrameType::control) {
    const Result<wire::Message> message = wire::decode(frame.body.bytes());
    if (!message) return end(Refused{message.error()});
    return on_message(*message);
  }
  if (!proven_) return end(Refused{{ErrorCode::protocol, "data came before a proof", ""}});
  if (frame.header.type == wire::FrameType::weights && takes_weights()) {
    const std::size_t bytes = sizeof frame + frame.body.size();
    if (inbox_->untaken_bytes + bytes > kUntakenWeightsMax)
      return end(Broken{"weights came faster than they were taken"});
    inbox_->untaken_bytes += bytes;
    return tell(frame);
  }
  Result<blocks::Asking::Added> added = asking_.add(frame);
  if (!added) return end(Refused{added.error()});
  if (added->again) send_now(*added->again);
  if (added->whole) tell(Content{*added->whole, std::move(added->content)});
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
    if (inbox_->events.empty()) tell(Waits{});
    return;
  }
  if (is_head() && proven_ && inbox_->events.size() < kUntoldMax) {
    if (const auto* guest = std::get_if<wire::Guest>(&message)) return tell(*guest);
    if (const auto* source = std::get_if<wire::Source>(&message)) return tell(*source);
  }
  const auto* offered = std::get_if<wire::Offered>(&message);
  if (offered == nullptr || !proven_ || offer_ != offered->offer) {
    return end(Refused{{ErrorCode::protocol,
                        (is_head() ? "the head answered with " : "another machine answered with ") +
                            std::string(wire::name_of(message)),
                        "install the same version of motley on both machines"}});
  }
  offer_.reset();
  asking_.set_hurries(offered->hurries);
  tell(*offered);
}

void BlockLink::proven() {
  proven_ = true;
  tell(Connected{});
  if (offer_) send_now(wire::Want{.offer = *offer_, .sha256 = {}});
  for (const wire::Want& want : asking_.restart()) send_now(want);
}

void BlockLink::on_closed(std::uint64_t generation, const std::string& why) {
  const std::lock_guard lock(inbox_->mutex);
  if (generation == generation_) end(Broken{why, done_});
}

void BlockLink::tell(Event event) {
  inbox_->events.emplace_back(number_, std::move(event));
  inbox_->changed.notify_all();
  if (inbox_->told) inbox_->told();
}

void BlockLink::end(Event event) {
  ++generation_;
  if (connection_ != nullptr) connection_->close();
  connection_.reset();
  proven_ = false;
  tell(std::move(event));
}

void BlockLink::send_now(const wire::Message& message) {
  connection_->send(control_frame(token_.run, message), transport::Priority::control);
}

void BlockLink::send(const wire::Message& message) {
  const std::lock_guard lock(inbox_->mutex);
  if (proven_) send_now(message);
}

void BlockLink::send(const wire::Frame& frame, transport::Priority priority) {
  const std::lock_guard lock(inbox_->mutex);
  if (proven_) connection_->send(frame, priority);
}

void BlockLink::ask(std::uint64_t offer) {
  const std::lock_guard lock(inbox_->mutex);
  offer_ = offer;
  if (proven_) send_now(wire::Want{.offer = offer, .sha256 = {}});
}

void BlockLink::want(const blocks::Hash& hash, std::size_t bytes, bool waited_for) {
  const std::lock_guard lock(inbox_->mutex);
  const std::optional<wire::Want> want = asking_.want(hash, bytes, waited_for);
  if (want && proven_) send_now(*want);
}

std::optional<BlockLink::Event> BlockLink::take() {
  if (inbox_->events.empty()) return std::nullopt;
  Event first = std::move(inbox_->events.front().second);
  inbox_->events.pop_front();
  return first;
}

}  // namespace motley::runtime

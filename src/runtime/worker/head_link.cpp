#include "runtime/worker/head_link.h"

#include <optional>
#include <utility>

#include "runtime/auth.h"
#include "runtime/head/head_listener.h"
#include "runtime/inputs.h"
#include "runtime/lanes.h"
#include "transport/crypto.h"

namespace motley::runtime {
namespace {

constexpr std::chrono::milliseconds kDialTimeout{5000};

}  // namespace

class HeadLink::Receiver final : public transport::Receiver {
 public:
  Receiver(HeadLink& link, std::uint64_t generation) : link_(link), generation_(generation) {}
  void on_frame(wire::Frame frame) override { link_.on_frame(generation_, frame); }
  void on_closed(Error error) override { link_.on_closed(generation_, error.message); }

 private:
  HeadLink& link_;
  const std::uint64_t generation_;
};

HeadLink::HeadLink(fleet::JoinToken token, const std::string& name, transport::Identity identity,
                   const std::string& feature, std::mutex& mutex, User& user)
    : token_(std::move(token)),
      identity_(std::move(identity)),
      mutex_(mutex),
      user_(user),
      tcp_(tcp_options(token_, identity_)) {
  Device none;
  none.name = feature;
  hello_ = hello_for(none, name, 0);
  hello_.features = {feature};
  hello_.token_id = token_.id;
}

HeadLink::~HeadLink() {
  std::shared_ptr<transport::Connection> connection;
  {
    const std::lock_guard lock(mutex_);
    ++generation_;
    connection = std::move(connection_);
  }
  if (connection != nullptr) connection->close();
}

void HeadLink::dial() {
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

void HeadLink::on_dialled(std::uint64_t generation, Result<std::shared_ptr<transport::Connection>> result) {
  std::shared_ptr<transport::Connection> connection;
  {
    const std::lock_guard lock(mutex_);
    if (generation != generation_) return;
    if (!result) {
      if (result.error().code == ErrorCode::refused) return user_.ended(Refused{result.error()});
      return user_.ended(Broken{result.error().message});
    }
    connection = connection_ = std::move(*result);
  }
  connection->start(std::make_shared<Receiver>(*this, generation));
  connection->send(control_frame(token_.run, hello_), transport::Priority::control);
  const wire::Proof proof{proof_mac(token_, "join", connection->peer(), identity_.spki, Side::joiner)};
  connection->send(control_frame(token_.run, proof), transport::Priority::control);
}

void HeadLink::on_frame(std::uint64_t generation, const wire::Frame& frame) {
  const std::lock_guard lock(mutex_);
  if (generation != generation_) return;
  if (frame.header.type == wire::FrameType::control) {
    const Result<wire::Message> message = wire::decode(frame.body.bytes());
    if (!message) return end(Refused{message.error()});
    return on_message(*message);
  }
  if (!proven_) return end(Refused{{ErrorCode::protocol, "data came before a proof", ""}});
  user_.take(frame);
}

void HeadLink::on_message(const wire::Message& message) {
  if (const auto* bye = std::get_if<wire::Bye>(&message)) return on_bye(*bye);
  if (const auto* reply = std::get_if<wire::ProofReply>(&message); reply != nullptr && !proven_)
    return on_reply(*reply);
  if (proven_ && user_.hear(message)) return;
  end(Refused{{ErrorCode::protocol, "the head answered with " + std::string(wire::name_of(message)),
               "install the same version of motley on both machines"}});
}

void HeadLink::on_bye(const wire::Bye& bye) {
  done_ = bye.code == "done";
  if (bye.code == "done" || bye.code == "lost" || bye.code == "full" || bye.code == "busy")
    return end(Broken{bye.found, done_});
  end(Refused{{bye.code == "data" ? ErrorCode::mismatch : ErrorCode::refused, wire::reason_of(bye), bye.hint}});
}

void HeadLink::on_reply(const wire::ProofReply& reply) {
  if (!proof_holds(reply.mac, token_, "head", connection_->peer(), identity_.spki, Side::joiner))
    return end(
        Refused{{ErrorCode::refused, "the machine that answered could not prove that it knows the token's secret",
                 "ask for a new token on the head"}});
  proven_ = true;
  user_.connected();
}

void HeadLink::on_closed(std::uint64_t generation, const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (generation == generation_) end(Broken{why, done_});
}

void HeadLink::end(End end) {
  ++generation_;
  if (connection_ != nullptr) connection_->close();
  connection_.reset();
  proven_ = false;
  user_.ended(std::move(end));
}

void HeadLink::send(const wire::Message& message) {
  if (proven_) connection_->send(control_frame(token_.run, message), transport::Priority::control);
}

}  // namespace motley::runtime

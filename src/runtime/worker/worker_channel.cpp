// The part of WorkerHost that deals with its channel: dialling, proof, lanes.

#include <algorithm>
#include <utility>

#include "runtime/auth.h"
#include "runtime/head/head_listener.h"
#include "runtime/worker/worker_host.h"
#include "wire/messages.h"

namespace motley::runtime {
namespace {

constexpr std::chrono::milliseconds kConnectTimeout{5000};

}  // namespace

// Hands what a connection yields to the mailbox, marked with the channel it belongs to.
class WorkerHost::LaneReceiver final : public transport::Receiver {
 public:
  using OnClosed = void (WorkerHost::*)(std::uint64_t generation, const Error&);
  LaneReceiver(WorkerHost& host, std::uint64_t generation, OnClosed end)
      : mailbox_(host.mailbox_), host_(host), generation_(generation), end_(end) {}
  void on_frame(wire::Frame frame) override {
    mailbox_->post(
        [&host = host_, generation = generation_, frame = std::move(frame)] { host.on_frame(generation, frame); });
  }
  void on_closed(Error error) override {
    mailbox_->post([&host = host_, generation = generation_, end = end_, error = std::move(error)] {
      (host.*end)(generation, error);
    });
  }

 private:
  std::shared_ptr<Mailbox> mailbox_;  // outlives the host; once stopped, it drops what is posted
  WorkerHost& host_;
  std::uint64_t generation_;
  OnClosed end_;
};

void WorkerHost::run_local(std::shared_ptr<transport::Connection> connection) {
  worker_.emplace(engine::WorkerOptions{}, static_cast<engine::WorkerOutput&>(*this));
  mailbox_->start("motley-worker", [this] { on_tick(); }, kTick);
  mailbox_->post([this, connection = std::move(connection)] {
    control_ = connection;
    data_ = DataLanes(1);
    data_.add(0, connection);
    stage_ = Stage::joined;
    ++generation_;
    worker_->connected(now(), false);
    control_->start(std::make_shared<LaneReceiver>(*this, generation_, &WorkerHost::on_closed));
  });
}

void WorkerHost::run_remote(transport::Tcp& tcp, const transport::Digest& own_spki, fleet::JoinToken token) {
  tcp_ = &tcp;
  own_spki_ = own_spki;
  token_ = std::move(token);
  worker_.emplace(engine::WorkerOptions{}, static_cast<engine::WorkerOutput&>(*this));
  mailbox_->start("motley-worker", [this] { on_tick(); }, kTick);
  mailbox_->post([this] {
    answered_ = now();
    dial();
  });
}

void WorkerHost::dial() {
  if (stage_ == Stage::ended || paused_) return;
  stage_ = Stage::connecting;
  const std::uint64_t generation = ++generation_;
  std::optional<transport::Digest> pin;
  if (!token_->plaintext) pin = token_->spki;
  tcp_->connect(endpoints(*token_), pin, kConnectTimeout, [this, mailbox = mailbox_, generation](auto result) {
    mailbox->post([this, generation, result = std::move(result)]() mutable {
      on_control_connected(generation, std::move(result));
    });
  });
}

void WorkerHost::redial(Duration after, const std::string& why) {
  drop_channel();
  if (stage_ == Stage::ended) return;
  if (leaving_) {
    finish({});
    return;
  }
  if (options_.token_source && options_.token_source->changed()) {
    finish(Error{ErrorCode::network, "the token's file has another one now", ""});
    return;
  }
  if (options_.patience && now() - answered_ >= *options_.patience) {
    finish(Error{ErrorCode::network, why, ""});
    return;
  }
  if (!paused_) say_once(why);
  stage_ = Stage::idle;
  redial_at_ = now() + after;
}

Duration WorkerHost::longest_backoff() const {
  return options_.patience ? std::min(kBackoffMax, *options_.patience / 3) : kBackoffMax;
}

void WorkerHost::on_control_connected(std::uint64_t generation, Result<std::shared_ptr<transport::Connection>> result) {
  if (generation != generation_ || stage_ != Stage::connecting) return;
  if (!result) {
    if (result.error().code == ErrorCode::refused) return on_stranger(result.error());
    if (head_has_ended(result.error())) return;
    backoff_ = std::min(longest_backoff(), std::max(kBackoffFirst, backoff_ * 2));
    redial(backoff_, result.error().message);
    return;
  }
  deserted_at_.reset();
  answered_ = now();
  control_ = std::move(*result);
  stage_ = Stage::proving;
  proof_deadline_ = now() + std::chrono::seconds(10);
  control_->start(std::make_shared<LaneReceiver>(*this, generation_, &WorkerHost::on_closed));
  wire::Hello hello = options_.hello;
  hello.token_id = token_->id;
  control_->send(control_frame(token_->run, hello), transport::Priority::control);
  const wire::Proof proof{proof_mac(*token_, "join", control_->peer(), own_spki_, Side::joiner)};
  control_->send(control_frame(token_->run, proof), transport::Priority::control);
}

// A head takes the token's file away when its run is over.
bool WorkerHost::head_has_ended(const Error& why) {
  if (!transport::nobody_listens(why)) {
    deserted_at_.reset();
    return false;
  }
  if (!deserted_at_) deserted_at_ = now();
  TokenSource* const file = options_.token_source.get();
  const bool over = file != nullptr && file->gone();
  const Duration wait = over ? std::min(options_.deserted, kOverWait) : options_.deserted;
  if (now() - *deserted_at_ < wait || (file != nullptr && file->look())) return false;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(wait).count();
  finish(Error{ErrorCode::network,
               why.message + (over ? ", and the token's file is gone: the run is over"
                                   : ", for " + std::to_string(seconds) + " s: the head has ended"),
               "join again once it goes on (motley train --resume --run DIR), or with the token of another run"});
  return true;
}

// While a head is away, another run's may have its port.
void WorkerHost::on_stranger(const Error& error) {
  if (met_head_) return redial(kBackoffMax, error.message + "; looking for the head again");
  on_refused(error);
}

// Whoever begins anew at the same place writes the file a moment after others can reach it.
void WorkerHost::on_refused(const Error& error) {
  if (!refused_at_) refused_at_ = now();
  if (!options_.token_source || now() - *refused_at_ >= kOtherTokenWait) return finish(error);
  redial(kBackoffFirst * 5, error.message + "; looking for another token in its file");
}

void WorkerHost::on_frame(std::uint64_t generation, const wire::Frame& frame) {
  if (generation != generation_) return;
  if (options_.patience) answered_ = now();
  if (stage_ == Stage::proving) {
    on_proving_frame(frame);
  } else if (stage_ == Stage::joined) {
    if (data_.count() == 0 && frame.header.type == wire::FrameType::control) {
      const Result<wire::Message> message = wire::decode(frame.body.bytes());
      if (message && std::holds_alternative<wire::Admitted>(*message))
        attach_data_lanes(std::get<wire::Admitted>(*message).fence);
    }
    if (frame.header.order == 0) return worker_->frame(frame, now());
    if (!order_.hold(frame)) {
      on_closed(generation, {ErrorCode::protocol, "weights came twice, or far out of their order", ""});
      return;
    }
    while (const std::optional<wire::Frame> next = order_.next()) worker_->frame(*next, now());
  }
}

void WorkerHost::on_proving_frame(const wire::Frame& frame) {
  const Result<wire::Message> message = wire::decode(frame.body.bytes());
  if (message && std::holds_alternative<wire::ProofReply>(*message)) {
    if (!proof_holds(std::get<wire::ProofReply>(*message).mac, *token_, "head", control_->peer(), own_spki_,
                     Side::joiner)) {
      on_stranger({ErrorCode::refused, "the machine that answered could not prove that it knows the token's secret",
                   "ask for a new token on the head"});
      return;
    }
    stage_ = Stage::joined;
    met_head_ = true;
    backoff_ = {};
    worker_->connected(now(), !control_->peer().same_machine && !control_->peer().encrypted);
  } else if (message && std::holds_alternative<wire::Bye>(*message)) {
    on_bye_before_joining(std::get<wire::Bye>(*message));
  } else {
    redial(kBackoffMax, "the coordinator answered with something unexpected");
  }
}

void WorkerHost::on_bye_before_joining(const wire::Bye& bye) {
  const std::string reason = wire::reason_of(bye);
  const std::string text = "refused: " + bye.code + (reason.empty() ? "" : ": " + reason);
  if (bye.code == "full" || bye.code == "busy" || bye.code == "lost") {
    redial(kBackoffMax, text + "; trying again");
  } else if (bye.code == "run" || bye.code == "wrong-token") {
    on_refused({ErrorCode::refused, text, bye.hint});
  } else {
    finish(Error{ErrorCode::refused, text, bye.hint});
  }
}

void WorkerHost::attach_data_lanes(std::uint64_t fence) {
  const std::size_t count = options_.data_connections(control_->peer());
  data_ = DataLanes(count);
  tcp_->use_threads(count);
  attach_data_lane(fence, 0);
}

// One after the other: there are limits on how many of one address may prove themselves at once.
void WorkerHost::attach_data_lane(std::uint64_t fence, std::uint32_t number) {
  const std::uint64_t generation = generation_;
  // Proof of a lane is by the key that its session came with, and a local socket has none.
  std::vector<transport::Endpoint> endpoints{local_endpoint(*token_)};
  if (!control_->peer().same_machine) endpoints = network_endpoints(*token_);
  std::optional<transport::Digest> pin;
  if (!token_->plaintext) pin = token_->spki;
  tcp_->connect(std::move(endpoints), pin, kConnectTimeout,
                [this, mailbox = mailbox_, generation, fence, number](auto result) {
                  mailbox->post([this, generation, fence, number, result = std::move(result)]() mutable {
                    if (generation != generation_ || stage_ != Stage::joined || data_end_) {
                      if (result) (*result)->close();
                    } else if (!result) {
                      on_data_closed(generation, result.error());
                    } else {
                      on_data_connected(*result, fence, number);
                    }
                  });
                });
}

void WorkerHost::on_data_connected(const std::shared_ptr<transport::Connection>& connection, std::uint64_t fence,
                                   std::uint32_t number) {
  const auto count = static_cast<std::uint32_t>(data_.count());
  const wire::Attach attach{fence, proof_mac(*token_, "lane", connection->peer(), own_spki_, Side::joiner), number,
                            count};
  connection->send(control_frame(token_->run, attach), transport::Priority::control);
  data_.add(number, connection);
  connection->start(std::make_shared<LaneReceiver>(*this, generation_, &WorkerHost::on_data_closed));
  if (number + 1 < count) attach_data_lane(fence, number + 1);
}

void WorkerHost::on_data_closed(std::uint64_t generation, const Error& error) {
  if (generation != generation_ || data_end_) return;
  data_ = {};
  data_end_ = {error.message, now() + kFarewellTime};
}

void WorkerHost::on_closed(std::uint64_t generation, const Error& error) {
  if (generation != generation_ || stage_ == Stage::ended) return;
  answered_ = now();
  if (stage_ == Stage::joined) {
    drop_channel();
    worker_->disconnected(error.message, now());  // answers with disconnect()
    if (tcp_ == nullptr) finish({});
    return;
  }
  backoff_ = std::min(longest_backoff(), std::max(kBackoffFirst, backoff_ * 2));
  redial(backoff_, error.message);
}

void WorkerHost::drop_channel() {
  ++generation_;
  data_.close();
  if (control_ != nullptr) control_->close();
  control_.reset();
  data_ = {};
  order_ = {};
  data_end_.reset();
}

}  // namespace motley::runtime

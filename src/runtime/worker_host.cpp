#include "runtime/worker_host.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/assert.h"
#include "runtime/auth.h"
#include "runtime/door.h"
#include "runtime/lanes.h"
#include "wire/limits.h"
#include "wire/messages.h"

namespace motley::runtime {
namespace {

constexpr Duration kBackoffFirst = std::chrono::milliseconds(200);
constexpr Duration kBackoffMax = std::chrono::seconds(3);
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

WorkerHost::WorkerHost(WorkerHostOptions options, WorkerHostEvents events)
    : options_(std::move(options)), events_(std::move(events)) {
  const auto in_mailbox = [this](auto call) { mailbox_->post([this, call = std::move(call)] { call(*worker_); }); };
  ComputeEvents compute;
  compute.progress = [in_mailbox](std::uint64_t task, std::uint64_t done) {
    in_mailbox([=](engine::Worker& w) { w.task_progress(task, done, now()); });
  };
  compute.begin = [in_mailbox](std::uint64_t task, std::uint64_t count, double weight, double loss_sum) {
    in_mailbox([=](engine::Worker& w) { w.task_begin(task, count, weight, loss_sum, now()); });
  };
  compute.chunk = [in_mailbox](std::uint64_t task, ChunkId chunk, const SharedBytes& gradient) {
    in_mailbox([=](engine::Worker& w) { w.task_chunk(task, chunk, gradient, now()); });
  };
  compute.finished = [this, in_mailbox](std::uint64_t task, const Outcome& outcome, double compute_seconds,
                                        double waited_seconds) {
    in_mailbox([=, this](engine::Worker& w) {
      task_failure_.reset();
      w.task_finished(task, outcome, compute_seconds, waited_seconds, now());
    });
  };
  compute.failed = [this, in_mailbox](std::uint64_t task, const Error& error) {
    in_mailbox([=, this](engine::Worker& w) {
      task_failure_ = error;
      w.task_failed(task, error, now());
    });
  };
  compute.made_step = [in_mailbox](std::uint64_t samples, double compute_seconds) {
    in_mailbox([=](engine::Worker& w) { w.made_step(samples, compute_seconds, now()); });
  };
  compute_ = std::make_shared<ComputeThread>(std::move(compute), options_.manners);
}

WorkerHost::~WorkerHost() {
  mailbox_->post([this] {
    drop_channel();
    stage_ = Stage::ended;
  });
  mailbox_->stop();
  compute_->stop();  // others may hold it for a moment longer
}

void WorkerHost::run_local(std::shared_ptr<transport::Connection> connection) {
  engine::WorkerOptions options;
  options.hello = options_.hello;
  worker_.emplace(std::move(options), static_cast<engine::WorkerOutput&>(*this));
  mailbox_->start([this] { on_tick(); }, kTick);
  mailbox_->post([this, connection = std::move(connection)] {
    control_ = data_ = connection;
    stage_ = Stage::joined;
    ++generation_;
    worker_->connected(now(), false);
    control_->start(std::make_shared<LaneReceiver>(*this, generation_, &WorkerHost::on_closed));
  });
}

void WorkerHost::run_remote(transport::Tcp& tcp, const transport::Digest& own_spki, cluster::JoinToken token) {
  tcp_ = &tcp;
  own_spki_ = own_spki;
  token_ = std::move(token);
  engine::WorkerOptions options;
  options.hello = options_.hello;
  options.hello.token_id = token_->id;
  worker_.emplace(std::move(options), static_cast<engine::WorkerOutput&>(*this));
  mailbox_->start([this] { on_tick(); }, kTick);
  mailbox_->post([this] { dial(); });
}

void WorkerHost::leave() {
  mailbox_->post([this] {
    leaving_ = true;
    if (stage_ == Stage::joined) {
      worker_->leave(now());
    } else {
      finish({});
    }
  });
}

void WorkerHost::pause(std::string why) {
  mailbox_->post([this, why = std::move(why)] {
    if (std::exchange(paused_, true) || leaving_) return;
    if (stage_ == Stage::joined) {
      aside_ = why;
      worker_->step_aside(now());
    } else if (stage_ != Stage::ended) {
      drop_channel();
      stage_ = Stage::idle;
    }
  });
}

void WorkerHost::resume() {
  mailbox_->post([this] {
    paused_ = false;
    redial_at_ = now();
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
  if (!paused_) say_once(why);
  stage_ = Stage::idle;
  redial_at_ = now() + after;
}

void WorkerHost::on_control_connected(std::uint64_t generation, Result<std::shared_ptr<transport::Connection>> result) {
  if (generation != generation_ || stage_ != Stage::connecting) return;
  if (!result) {
    if (result.error().code == ErrorCode::refused) {
      finish(result.error());
      return;
    }
    backoff_ = std::min(kBackoffMax, std::max(kBackoffFirst, backoff_ * 2));
    redial(backoff_, result.error().message);
    return;
  }
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

void WorkerHost::on_frame(std::uint64_t generation, const wire::Frame& frame) {
  if (generation != generation_) return;
  if (stage_ == Stage::proving) {
    on_proving_frame(frame);
  } else if (stage_ == Stage::joined) {
    if (data_ == nullptr && frame.header.type == wire::FrameType::control) {
      const Result<wire::Message> message = wire::decode(frame.body.bytes());
      if (message && std::holds_alternative<wire::Admitted>(*message))
        attach_data_lane(std::get<wire::Admitted>(*message).fence);
    }
    worker_->frame(frame, now());
  }
}

void WorkerHost::on_proving_frame(const wire::Frame& frame) {
  const Result<wire::Message> message = wire::decode(frame.body.bytes());
  if (message && std::holds_alternative<wire::ProofReply>(*message)) {
    if (!proof_holds(std::get<wire::ProofReply>(*message).mac, *token_, "head", control_->peer(), own_spki_,
                     Side::joiner)) {
      finish(Error{ErrorCode::refused, "the machine that answered could not prove that it knows the token's secret",
                   "ask for a new token on the head"});
      return;
    }
    stage_ = Stage::joined;
    backoff_ = {};
    worker_->connected(now(), !control_->peer().same_machine && !control_->peer().encrypted);
  } else if (message && std::holds_alternative<wire::Bye>(*message)) {
    on_bye_before_joining(std::get<wire::Bye>(*message));
  } else {
    redial(kBackoffMax, "the coordinator answered with something unexpected");
  }
}

void WorkerHost::on_bye_before_joining(const wire::Bye& bye) {
  const std::string text = "refused: " + bye.code + (bye.expected.empty() ? "" : ": expected " + bye.expected) +
                           (bye.found.empty() ? "" : ", found " + bye.found);
  if (bye.code == "full" || bye.code == "busy" || bye.code == "lost") {
    redial(kBackoffMax, text + "; trying again");
  } else {
    finish(Error{ErrorCode::refused, text, bye.hint});
  }
}

void WorkerHost::attach_data_lane(std::uint64_t fence) {
  const std::uint64_t generation = generation_;
  // Proof of a lane is by the key that its session came with, and a local socket has none.
  std::vector<transport::Endpoint> endpoints{local_endpoint(*token_)};
  if (!control_->peer().same_machine) endpoints = network_endpoints(*token_);
  std::optional<transport::Digest> pin;
  if (!token_->plaintext) pin = token_->spki;
  tcp_->connect(std::move(endpoints), pin, kConnectTimeout, [this, mailbox = mailbox_, generation, fence](auto result) {
    mailbox->post([this, generation, fence, result = std::move(result)]() mutable {
      if (generation != generation_ || stage_ != Stage::joined) {
        if (result) (*result)->close();
        return;
      }
      if (result) {
        const wire::Attach attach{fence, proof_mac(*token_, "lane", (*result)->peer(), own_spki_, Side::joiner)};
        (*result)->send(control_frame(token_->run, attach), transport::Priority::control);
      }
      on_data_connected(generation, std::move(result));
    });
  });
}

void WorkerHost::on_data_connected(std::uint64_t generation, Result<std::shared_ptr<transport::Connection>> result) {
  if (!result) {
    on_data_closed(generation, result.error());
    return;
  }
  data_ = std::move(*result);
  data_->start(std::make_shared<LaneReceiver>(*this, generation, &WorkerHost::on_data_closed));
}

void WorkerHost::on_data_closed(std::uint64_t generation, const Error& error) {
  if (generation != generation_) return;
  data_.reset();
  data_end_ = {error.message, now() + kFarewellTime};
}

void WorkerHost::on_closed(std::uint64_t generation, const Error& error) {
  if (generation != generation_ || stage_ == Stage::ended) return;
  if (stage_ == Stage::joined) {
    drop_channel();
    worker_->disconnected(error.message, now());  // answers with disconnect()
    if (tcp_ == nullptr) finish({});
    return;
  }
  backoff_ = std::min(kBackoffMax, std::max(kBackoffFirst, backoff_ * 2));
  redial(backoff_, error.message);
}

void WorkerHost::drop_channel() {
  ++generation_;
  if (data_ != nullptr && data_ != control_) data_->close();
  if (control_ != nullptr) control_->close();
  control_.reset();
  data_.reset();
  data_end_.reset();
}

void WorkerHost::finish(Status status) {
  if (stage_ == Stage::ended) return;
  drop_channel();
  stage_ = Stage::ended;
  if (const std::optional<plan::Affine> speed = worker_->speed()) SpeedStore(options_.speeds).keep(speed_key_, *speed);
  if (events_.ended) events_.ended(std::move(status));
}

void WorkerHost::on_tick() {
  if (stage_ == Stage::ended) return;
  if (stage_ == Stage::idle && tcp_ != nullptr && !paused_ && now() >= redial_at_) dial();
  if (stage_ == Stage::proving && now() > proof_deadline_) redial(kBackoffMax, "the coordinator did not answer");
  if (data_end_ && now() > data_end_->deadline) {
    const Error error{ErrorCode::network, data_end_->why, ""};
    on_closed(generation_, error);
  }
  if (stage_ == Stage::joined) worker_->tick(now());
}

void WorkerHost::say_once(const std::string& text) {
  if (text == last_said_) return;
  last_said_ = text;
  if (events_.note) events_.note(text);
}

void WorkerHost::send(wire::Frame frame, engine::Lane lane) {
  const auto& connection = lane == engine::Lane::control ? control_ : data_;
  if (connection != nullptr) connection->send(std::move(frame), priority_of(lane));
}

void WorkerHost::prepare(const wire::RunSpec& spec, const SharedBytes& model_file) {
  if (prepared_spec_ == spec) {
    mailbox_->post([this] { tell_prepared(); });
    return;
  }
  prepared_spec_.reset();
  auto fingerprints = std::make_shared<std::tuple<std::string, std::string, std::string>>();
  auto build = [this, spec, model_file, fingerprints]() -> Result<Prepared> {
    Result<PreparedWorker> worker = options_.prepare(spec, model_file);
    if (!worker) return worker.error();
    *fingerprints = {worker->train_fingerprint, worker->test_fingerprint, worker->speed_key};
    return std::move(worker->prepared);
  };
  compute_->prepare(std::move(build), [this, spec, fingerprints](Result<const Layout*> layout) {
    mailbox_->post([this, spec, fingerprints, layout = std::move(layout)] {
      if (!layout) {
        worker_->prepare_failed(layout.error(), now());
        return;
      }
      prepared_spec_ = spec;
      layout_ = **layout;
      std::tie(train_fingerprint_, test_fingerprint_, speed_key_) = *fingerprints;
      speed_key_.insert(0, options_.hello.name + ": ");
      tell_prepared();
    });
  });
}

void WorkerHost::tell_prepared() {
  const std::optional<plan::Affine> speed = SpeedStore(options_.speeds).find(speed_key_);
  worker_->prepared(layout_, train_fingerprint_, test_fingerprint_, speed, now());
}

void WorkerHost::start_task(engine::TaskOrder order) { compute_->start(std::move(order)); }
void WorkerHost::weights_arrived(std::uint64_t number, ChunkId chunk, SharedBytes weights) {
  compute_->arrived(number, chunk, std::move(weights));
}
void WorkerHost::limit_task(std::uint64_t number, std::uint64_t count) {
  const std::uint64_t holds = compute_->limit(number, count);
  // Behind what the computation reported before.
  if (holds > 0) mailbox_->post([this, number, holds] { worker_->task_limited(number, holds, now()); });
}
void WorkerHost::finish_early(std::uint64_t number) { compute_->finish_early(number); }

void WorkerHost::admitted(std::uint64_t /*worker*/) {
  last_said_.clear();
  if (events_.link) events_.link(LinkChange::joined, "joined");
}

void WorkerHost::step_done(std::uint64_t version, std::uint64_t samples_mine) {
  if (events_.step) events_.step(version, samples_mine);
}

void WorkerHost::disconnect(bool reconnect, const Error& why) {
  if (reconnect && tcp_ != nullptr) {
    const std::string aside = std::exchange(aside_, {});
    if (events_.link) {
      events_.link(aside.empty() ? LinkChange::lost : LinkChange::left, aside.empty() ? why.message : aside);
    }
    redial(kBackoffFirst, why.message);
  } else if (why.code == ErrorCode::interrupted) {
    finish({});
  } else {
    finish(task_failure_.value_or(why));  // it was excluded for that
  }
}

}  // namespace motley::runtime

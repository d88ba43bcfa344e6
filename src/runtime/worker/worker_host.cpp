#include "runtime/worker/worker_host.h"

#include <utility>

namespace motley::runtime {

// Posts what the coordinator of the same process orders to the worker's mailbox.
class WorkerHost::LocalDelegate final : public engine::LocalWorker {
 public:
  LocalDelegate(WorkerHost& host, bool able)
      : mailbox_(host.mailbox_), host_(host), compute_(host.compute_), able_(able) {}
  bool delegate(engine::DelegatedSteps order, engine::DelegationEvents events) override {
    if (!able_) return false;
    mailbox_->post([&host = host_, order = std::move(order), events = std::move(events)] {
      host.worker_->delegate(order, events);
    });
    return true;
  }
  void cut(std::uint64_t number) override {
    mailbox_->post([&host = host_, number] { host.worker_->cut(number); });
  }
  std::shared_ptr<DeviceServer> device_server() override {
    const std::shared_ptr<ComputeThread> compute = able_ ? compute_.lock() : nullptr;
    return compute ? compute->server() : nullptr;
  }
  bool when_idle(std::function<void()> idle) override {
    const std::shared_ptr<ComputeThread> compute = compute_.lock();
    if (compute != nullptr) compute->when_idle(std::move(idle));
    return compute != nullptr;
  }

 private:
  std::shared_ptr<Mailbox> mailbox_;  // outlives the host; once stopped, it drops what is posted
  WorkerHost& host_;
  std::weak_ptr<ComputeThread> compute_;
  bool able_;
};

WorkerHost::WorkerHost(WorkerHostOptions options, WorkerHostEvents events)
    : options_(std::move(options)), events_(std::move(events)) {
  const auto in_mailbox = [this](auto call) { mailbox_->post([this, call = std::move(call)] { call(*worker_); }); };
  ComputeEvents compute;
  compute.progress = [in_mailbox](std::uint64_t task, std::uint64_t done) {
    in_mailbox([=](engine::Worker& w) { w.task_progress(task, done, now()); });
  };
  compute.begin = [in_mailbox](std::uint64_t task, std::uint64_t count, const engine::Begun& begun) {
    in_mailbox([=](engine::Worker& w) { w.task_begin(task, count, begun, now()); });
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
  compute.note = [this](const std::string& text) { mailbox_->post([this, text] { say_once(text); }); };
  compute.out = [in_mailbox](const Error& error) {
    in_mailbox([=](engine::Worker& w) { w.device_out(error, now()); });
  };
  // A process of its own leaves, and is started again; that of the head stays.
  compute.grown = [this](const Error& error) {
    mailbox_->post([this, error] { tcp_ != nullptr ? worker_->device_out(error, now()) : say_once(error.message); });
  };
  compute_ = std::make_shared<ComputeThread>(std::move(compute), options_.resource_policy);
}

WorkerHost::~WorkerHost() {
  mailbox_->post([this] {
    drop_channel();
    stage_ = Stage::ended;
  });
  mailbox_->stop();
  compute_->stop();  // others may hold it for a moment longer
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
    deserted_at_.reset();
    redial_at_ = now();
  });
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
  if (stage_ != Stage::joined) return;
  const std::uint64_t before = std::exchange(received_bytes_, data_.received_bytes());
  if (tcp_ != nullptr && received_bytes_ > before) worker_->bytes_came(now());
  worker_->tick(now());
}

void WorkerHost::say_once(const std::string& text) {
  if (text == last_said_) return;
  last_said_ = text;
  if (events_.note) events_.note(text);
}

void WorkerHost::send(wire::Frame frame, engine::Lane lane) {
  if (lane != engine::Lane::control) {
    if (data_.complete()) data_.send(std::move(frame), lane);
  } else if (control_ != nullptr) {
    control_->send(std::move(frame), priority_of(lane));
  }
}

void WorkerHost::prepare(const wire::RunSpec& spec, const SharedBytes& script_files) {
  if (prepared_spec_ == spec) {
    mailbox_->post([this] { tell_prepared(); });
    return;
  }
  prepared_spec_.reset();
  struct Found {
    engine::Compared compared;
    engine::SampleCounts samples;
    std::string speed_key;
    std::optional<plan::EndCost> wire_cost;
  };
  auto found = std::make_shared<Found>();
  auto build = [this, spec, script_files, found]() -> Result<Prepared> {
    Result<PreparedWorker> worker = options_.prepare(spec, script_files);
    if (!worker) return worker.error();
    *found = {worker->compared, worker->samples, worker->speed_key, worker->wire_cost};
    return std::move(worker->prepared);
  };
  compute_->prepare(std::move(build), [this, spec, found](Result<const Layout*> layout) {
    mailbox_->post([this, spec, found, layout = std::move(layout)] {
      if (!layout) {
        worker_->prepare_failed(layout.error(), now());
        return;
      }
      prepared_spec_ = spec;
      layout_ = **layout;
      compared_ = found->compared;
      samples_ = found->samples;
      speed_key_ = options_.hello.name + ": " + found->speed_key;
      wire_cost_ = found->wire_cost;
      tell_prepared();
    });
  });
}

void WorkerHost::tell_prepared() {
  const std::optional<plan::Affine> speed = SpeedStore(options_.speeds).find(speed_key_);
  if (wire_cost_) worker_->knows_wire(*wire_cost_);
  worker_->prepared(layout_, compared_, samples_, speed, now());
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

// Who owes its device rests makes no steps without asking: rests are for tasks.
std::shared_ptr<engine::LocalWorker> WorkerHost::local_worker() {
  return std::make_shared<LocalDelegate>(*this, options_.resource_policy.duty >= 1);
}

void WorkerHost::make_steps(engine::DelegatedSteps order) {
  DelegatedStepEvents events;
  events.step = [this, mailbox = mailbox_, compute = std::weak_ptr(compute_)](engine::DelegatedStep step) {
    mailbox->post([this, compute, step = std::move(step)]() mutable {
      const auto taken = [compute] {
        if (const auto thread = compute.lock()) thread->taken();
      };
      worker_->delegated_step(std::move(step), taken, now());
    });
  };
  events.ended = [this, mailbox = mailbox_](engine::DelegationEnd end) {
    mailbox->post([this, end = std::move(end)] { worker_->delegation_ended(end); });
  };
  compute_->delegate(std::move(order), std::move(events));
}

void WorkerHost::end_steps(std::uint64_t number) { compute_->cut(number); }

void WorkerHost::admitted(std::uint64_t /*worker*/) {
  last_said_.clear();
  options_.patience.reset();
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

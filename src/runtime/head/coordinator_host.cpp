#include "runtime/head/coordinator_host.h"

#include <algorithm>

#include "base/assert.h"
#include "base/shell.h"
#include "wire/limits.h"

namespace motley::runtime {
namespace {

constexpr Duration kBetweenSteps = std::chrono::seconds(1);  // longer: nobody trains

}  // namespace

CoordinatorHost::CoordinatorHost(CoordinatorHostOptions options, ps::Server server, store::LedgerWriter ledger,
                                 report::Sink& sink, std::function<void(Status)> on_end)
    : options_(std::move(options)),
      on_end_(std::move(on_end)),
      later_(sink, mailbox_),
      engine_(options_.engine, std::move(server), *this),
      journal_(options_.journal, engine_, std::move(ledger), later_,
               [this](report::Event event) { tell(std::move(event)); }),
      connections_({options_.token, options_.own_spki, options_.engine.incarnation, options_.journal.run_dir,
                    options_.offers, options_.machine, options_.shows_codes, options_.verbose},
                   mailbox_, engine_, later_) {}

CoordinatorHost::~CoordinatorHost() {
  mailbox_->post([this] {
    ended_ = true;
    connections_.close_all();
  });
  mailbox_->stop();  // what the journal says from now on is dropped
}

void CoordinatorHost::start() {
  mailbox_->start("motley-head", [this] { on_tick(); }, kTick);
  mailbox_->post([this] {
    journal_.begin();
    engine_.start(now());
    if (!ended_) journal_.write_checkpoint();
  });
}

void CoordinatorHost::local_failed(const std::string& name, const Error& error) {
  mailbox_->post([this, name, error] { local_failures_.emplace(name, error); });
}

void CoordinatorHost::stop(bool final) {
  mailbox_->post([this, final] {
    stopping_ = true;
    if (!ended_) engine_.stop(now(), final);
  });
}

void CoordinatorHost::tell(report::Event event) {
  mailbox_->post([this, event = std::move(event)] { later_.take(event); });
}

std::future<std::vector<std::optional<engine::Planned>>> CoordinatorHost::forecast(
    std::vector<std::uint64_t> global_batches, std::uint64_t local_steps) {
  using Forecasts = std::vector<std::optional<engine::Planned>>;
  auto promise = std::make_shared<std::promise<Forecasts>>();
  std::future<Forecasts> future = promise->get_future();
  mailbox_->post([this, promise, batches = std::move(global_batches), local_steps] {
    Forecasts forecasts;
    for (const std::uint64_t steps : {std::uint64_t{1}, local_steps})
      for (const std::uint64_t batch : batches) forecasts.push_back(engine_.forecast(batch, steps));
    promise->set_value(std::move(forecasts));
  });
  return future;
}

void CoordinatorHost::on_tick() {
  if (ended_) return;
  engine_.tick(now());
  connections_.watch();
  judge_local_failures();
  if (ended_) return;
  if (engine_.computes()) computed_ = now();
  connections_.set_training(computed_ && now() - *computed_ < kBetweenSteps);
  later_.take(report::Waiting{engine_.waiting_for()});
}

// Its session ends by what it said on its connection, and a little later.
void CoordinatorHost::judge_local_failures() {
  std::erase_if(local_failures_, [this](const auto& failure) {
    const bool gone = !connections_.has_local(failure.first);
    if (gone) failed_here_ = failure.second;
    return gone;
  });
  if (failed_here_ && connections_.empty() && may_come_back_.empty()) end(*failed_here_);
}

void CoordinatorHost::send(engine::SessionId session, wire::Frame frame, engine::Lane lane) {
  connections_.send(session, std::move(frame), lane);
}

void CoordinatorHost::close(engine::SessionId session, const wire::Bye& bye) { connections_.close(session, bye); }

std::size_t CoordinatorHost::queued_bytes(engine::SessionId session) const {
  return connections_.queued_bytes(session);
}

bool CoordinatorHost::delegate(engine::SessionId session, const engine::DelegatedSteps& order) {
  const std::shared_ptr<engine::LocalWorker> worker = connections_.local_worker(session);
  if (worker == nullptr) return false;
  engine::DelegationEvents events;
  events.step = [this, mailbox = mailbox_, session](engine::DelegatedStep step, std::function<void()> taken) {
    mailbox->post([this, session, step = std::move(step), taken = std::move(taken)] {
      if (!ended_) engine_.delegated_step(session, step, now());
      taken();
    });
  };
  events.ended = [this, mailbox = mailbox_, session](engine::DelegationEnd end) {
    mailbox->post([this, session, end = std::move(end)] {
      if (!ended_) engine_.delegation_ended(session, end, now());
    });
  };
  return worker->delegate(order, std::move(events));
}

void CoordinatorHost::cut(engine::SessionId session, std::uint64_t number) {
  if (const auto worker = connections_.local_worker(session)) worker->cut(number);
}

std::shared_ptr<DeviceServer> CoordinatorHost::device_server(engine::SessionId session) {
  const auto worker = connections_.local_worker(session);
  return worker ? worker->device_server() : nullptr;
}

void CoordinatorHost::worker_changed(const engine::WorkerChange& change) {
  if (change.event == engine::Membership::lost || change.event == engine::Membership::left)
    may_come_back_.insert(change.name);
  else
    may_come_back_.erase(change.name);
  later_.take(event_of(change));
}

void CoordinatorHost::warning(std::string text) { later_.take(report::Note{std::move(text)}); }

void CoordinatorHost::planned(const engine::Planned& plan) {
  const std::uint64_t steps = options_.journal.rounds_possible;
  journal_.planned(plan, steps > 0 ? engine_.forecast(plan.global_batch, steps) : std::nullopt);
}

void CoordinatorHost::step_closed(const engine::StepClosed& step) {
  report::StepDone done = event_of(step, engine_.steps());
  if (step.closed) done.update_s = std::max(0.0, seconds(now() - *step.closed));
  for (report::WorkerPart& part : done.workers) connections_.add_traffic(part);
  connections_.pace_files(done.seconds, done.samples);
  journal_.step(step, done);
}

void CoordinatorHost::evaluated(const engine::Evaluated& evaluation) { journal_.evaluated(evaluation); }

std::vector<double> CoordinatorHost::rates_after(const engine::Evaluated& evaluation) {
  return options_.rates_after ? options_.rates_after(journal_.event(evaluation)) : std::vector<double>{};
}

// What a local worker has in hand may outlast the step that it was for.
void CoordinatorHost::paused(std::uint64_t version, bool step) {
  const auto busy = std::make_shared<std::size_t>(1);
  const auto one_less = [this, busy, version, step] {
    if (--*busy == 0 && !ended_) later_.take(report::Paused{version, step, state_of(engine_.server(), true)});
  };
  for (const std::shared_ptr<engine::LocalWorker>& worker : connections_.local_workers())
    if (worker->when_idle([mailbox = mailbox_, one_less] { mailbox->post(one_less); })) ++*busy;
  one_less();
}

void CoordinatorHost::go_on(engine::Resume resume, bool eval_point) {
  mailbox_->post([this, resume = std::move(resume), eval_point] {
    if (ended_) return;
    engine_.resume(resume, now());
    journal_.resumed(resume, eval_point);
  });
}

void CoordinatorHost::finished() {
  if (stopping_ && engine_.server().version() < engine_.steps()) {
    end(Error{ErrorCode::interrupted, "interrupted after step " + std::to_string(engine_.server().version()),
              "motley train --resume --run " + in_shell(options_.journal.run_dir)});
  } else {
    end({});
  }
}

void CoordinatorHost::failed(Error error) { end(std::move(error), false); }

// The last checkpoint is on disk before anybody is told that the run is over.
void CoordinatorHost::end(Status status, bool worth_keeping) {
  if (ended_) return;
  ended_ = true;
  connections_.shut();
  connections_.close_files({status ? "done" : "lost", {}, "the run is over", {}});
  later_.take(report::Waiting{});
  if (worth_keeping) journal_.write_checkpoint();
  Result<std::filesystem::path> newest = journal_.drain();
  // Behind the checkpoint event, which the journal has posted by now.
  mailbox_->post([this, status = std::move(status), newest = std::move(newest)]() mutable {
    if (status && !newest) status = newest.error();
    if (status) {
      later_.take(journal_.done(newest->string()));
    } else if (newest && status.error().code == ErrorCode::interrupted) {
      Error interrupted = status.error();
      interrupted.message += "; checkpoint: " + newest->string();
      status = std::move(interrupted);
    }
    later_.flush();
    on_end_(std::move(status));
  });
}

}  // namespace motley::runtime

#include "runtime/head/coordinator_host.h"

#include <algorithm>

#include "base/assert.h"
#include "base/format.h"
#include "wire/limits.h"

namespace motley::runtime {
namespace {

// Where steps come faster than the redo log may write, a kill costs what was done since the newest checkpoint: then
// they come as often as this, unless they would write more than the log.
constexpr double kUnloggedSeconds = 5;
constexpr double kUnloggedBytesPerSecondMax = 50e6;

engine::CoordinatorOptions within(engine::CoordinatorOptions options, std::shared_ptr<RedoBudget> budget) {
  options.wants_gradients = [kept = std::move(budget)](std::size_t bytes) { return kept->take(bytes, now()); };
  return options;
}

}  // namespace

CoordinatorHost::CoordinatorHost(CoordinatorHostOptions options, ps::Server server, store::LedgerWriter ledger,
                                 report::Sink& sink, std::function<void(Status)> on_end)
    : options_(std::move(options)),
      sink_(sink),
      on_end_(std::move(on_end)),
      engine_(within(options_.engine, redo_budget_), std::move(server), *this),
      invitations_(options_.token, options_.run_dir) {
  PersisterEvents events;
  events.checkpoint = [this](std::uint64_t step, const std::filesystem::path& path) {
    tell(report::CheckpointWritten{step, path.string()});
  };
  events.error = [this](const Error& error) { tell(report::Failure{error}); };
  persister_ = std::make_unique<Persister>(options_.run_dir, std::move(ledger), redo_budget_, std::move(events));
}

CoordinatorHost::~CoordinatorHost() {
  mailbox_->post([this] {
    ended_ = true;
    for (auto& [id, link] : links_) link.connection->close();
  });
  mailbox_->stop();
  persister_.reset();  // its last words go to the mailbox, which drops them
}

void CoordinatorHost::start() {
  mailbox_->start([this] { on_tick(); }, kTick);
  mailbox_->post([this] {
    started_ = last_checkpoint_ = now();
    note_position(engine_.server().version());
    engine_.start(now());
    if (!ended_) write_checkpoint();
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
  mailbox_->post([this, event = std::move(event)] { sink_.take(event); });
}

std::future<std::vector<std::optional<engine::Planned>>> CoordinatorHost::forecast(
    std::vector<std::uint64_t> global_batches) {
  using Forecasts = std::vector<std::optional<engine::Planned>>;
  auto promise = std::make_shared<std::promise<Forecasts>>();
  std::future<Forecasts> future = promise->get_future();
  mailbox_->post([this, promise, batches = std::move(global_batches)] {
    Forecasts forecasts;
    for (const std::uint64_t batch : batches) forecasts.push_back(engine_.forecast(batch));
    promise->set_value(std::move(forecasts));
  });
  return future;
}

void CoordinatorHost::note_position(std::uint64_t step) {
  const StepRange range = engine_.range(step);
  epoch_ = range.epoch;
  position_ = range.order_first;
}

void CoordinatorHost::note_batch(const engine::StepClosed& step) {
  const BatchChange& change = *step.batch_change;
  persister_->batch(change);
  std::string text = formatted(
      "from step %llu on a step has %llu samples instead of %llu, because the gradient noise scale is %.0f samples; "
      "the learning rate is %.3g times the one that was set",
      static_cast<unsigned long long>(change.first_step) + 1, static_cast<unsigned long long>(change.batch),
      static_cast<unsigned long long>(step.global_batch), step.noise.scale.value_or(0), change.rate);
  sink_.take(report::Note{std::move(text)});
}

void CoordinatorHost::on_tick() {
  if (ended_) return;
  engine_.tick(now());
  end_faulty_sessions();
  send_away_revoked();
  judge_local_failures();
  if (ended_) return;
  sink_.take(report::Waiting{engine_.waiting_for()});
}

// Its session ends by what it said on its connection, and a little later.
void CoordinatorHost::judge_local_failures() {
  std::erase_if(local_failures_, [this](const auto& failure) {
    const bool gone = std::none_of(sessions_.begin(), sessions_.end(), [&](const auto& session) {
      return session.second.local && session.second.name == failure.first;
    });
    if (gone && sessions_.empty()) end(failure.second);
    return gone;
  });
}

void CoordinatorHost::write_checkpoint() {
  store::CheckpointContent content = options_.checkpoint_base;
  ps::Snapshot snapshot = engine_.server().snapshot();
  content.step = snapshot.version;
  content.epoch = epoch_;
  content.position = position_;
  content.weights = std::move(snapshot.weights);
  content.optimizer = std::move(snapshot.optimizer);
  const std::size_t vectors = 1 + content.optimizer.size();
  const double bytes = static_cast<double>(content.layout.flat_elements() * sizeof(float) * vectors);
  unlogged_seconds_ = std::max(kUnloggedSeconds, bytes / kUnloggedBytesPerSecondMax);
  persister_->checkpoint(std::move(content));
  last_checkpoint_ = now();
}

void CoordinatorHost::add_traffic(report::WorkerPart& part) {
  for (auto& [id, session] : sessions_) {
    if (session.name != part.worker || session.local) continue;
    transport::Traffic total;
    for (const LinkId link : session.links()) {
      const auto found = links_.find(link);
      if (found == links_.end()) continue;
      const transport::Traffic traffic = found->second.connection->traffic();
      total.sent_bytes += traffic.received_bytes;  // by the worker
      total.received_bytes += traffic.sent_bytes;
    }
    part.sent_bytes = total.sent_bytes - session.reported.sent_bytes;
    part.received_bytes = total.received_bytes - session.reported.received_bytes;
    session.reported = total;
  }
}

void CoordinatorHost::worker_changed(const engine::WorkerChange& change) { sink_.take(event_of(change)); }

void CoordinatorHost::warning(std::string text) { sink_.take(report::Note{std::move(text)}); }

void CoordinatorHost::planned(const engine::Planned& plan) {
  predicted_samples_per_s_ = plan.step.samples_per_second;
  sink_.take(event_of(plan));
}

void CoordinatorHost::step_closed(const engine::StepClosed& step) {
  store::LedgerStep record = record_of(step, options_.engine.incarnation, engine_.server().limits_norm());
  report::StepDone done = event_of(step, engine_.steps());
  options_.since_mark.add(record, done.seconds, done.learning_rate);
  persister_->step(std::move(record), step.gradients);
  if (step.batch_change) note_batch(step);

  // The first steps of a process pay for first touch and compilation; they are not the steady part.
  constexpr std::uint64_t kWarmUpSteps = 3;
  if (steps_ == kWarmUpSteps) steady_seconds_ = 0, steady_samples_ = 0;
  ++steps_;
  samples_ += step.samples;
  steady_seconds_ += done.seconds;
  steady_samples_ += step.samples;
  last_loss_ = done.loss;
  noise_ = done.noise;
  note_position(step.step + 1);
  for (report::WorkerPart& part : done.workers) add_traffic(part);
  sink_.take(done);
  tell_mark(step);

  const double since = seconds(now() - last_checkpoint_);
  const bool due =
      since >= options_.checkpoint_seconds || (since >= unlogged_seconds_ && persister_->wants_checkpoint());
  const bool newest = step.step + 1 == engine_.server().version();  // else its weights are gone
  if (due && newest && step.step + 1 < engine_.steps()) write_checkpoint();
}

// Held at marks, a run has them where it evaluates; else an epoch is what people think in.
void CoordinatorHost::tell_mark(const engine::StepClosed& step) {
  const std::uint64_t version = step.step + 1;
  const std::uint64_t every = options_.engine.holds == modes::Holds::never ? 0 : options_.engine.evaluate_every;
  const bool at_mark = every > 0 ? version % every == 0 : engine_.range(version).order_first == 0;
  if (!at_mark && version < engine_.steps()) return;
  sink_.take(options_.since_mark.take(step.epoch, version, state_of(engine_.server(), false)));
}

void CoordinatorHost::evaluated(const engine::Evaluated& evaluation) {
  const report::EvalDone done = event_of(evaluation, options_.has_accuracy, options_.scores);
  accuracy_ = done.accuracy;
  evaluated_once_ = true;
  sink_.take(done);
}

std::vector<double> CoordinatorHost::rates_after(const engine::Evaluated& evaluation) {
  if (!options_.rates_after) return {};
  return options_.rates_after(event_of(evaluation, options_.has_accuracy, options_.scores));
}

// What a local worker has in hand may outlast the step that it was for.
void CoordinatorHost::held(std::uint64_t version, bool step) {
  const auto busy = std::make_shared<std::size_t>(1);
  const auto one_less = [this, busy, version, step] {
    if (--*busy == 0 && !ended_) sink_.take(report::Held{version, step, state_of(engine_.server(), true)});
  };
  for (const auto& [id, session] : sessions_) {
    if (session.worker == nullptr) continue;
    if (session.worker->when_idle([mailbox = mailbox_, one_less] { mailbox->post(one_less); })) ++*busy;
  }
  one_less();
}

void CoordinatorHost::go_on(engine::Release release, bool mark) {
  mailbox_->post([this, release = std::move(release), mark] {
    if (ended_) return;
    engine_.release(release, now());
    persister_->released(release.version, mark, release.state ? std::optional(engine_.state()) : std::nullopt);
  });
}

void CoordinatorHost::finished() {
  if (stopping_ && engine_.server().version() < engine_.steps()) {
    end(Error{ErrorCode::interrupted, "interrupted after step " + std::to_string(engine_.server().version()),
              "motley train --resume --run " + options_.run_dir});
  } else {
    end({});
  }
}

void CoordinatorHost::failed(Error error) { end(std::move(error), false); }

// The last checkpoint is on disk before anybody is told that the run is over.
void CoordinatorHost::end(Status status, bool worth_keeping) {
  if (ended_) return;
  ended_ = true;
  sink_.take(report::Waiting{});
  if (worth_keeping) write_checkpoint();
  Result<std::filesystem::path> newest = persister_->drain();
  // Behind the checkpoint event, which the persister has posted by now.
  mailbox_->post([this, status = std::move(status), newest = std::move(newest)]() mutable {
    if (status && !newest) status = newest.error();
    if (status) {
      report_done(newest->string());
    } else if (newest && status.error().code == ErrorCode::interrupted) {
      Error interrupted = status.error();
      interrupted.message += "; checkpoint: " + newest->string();
      status = std::move(interrupted);
    }
    on_end_(std::move(status));
  });
}

void CoordinatorHost::report_done(const std::string& checkpoint) {
  report::Done done;
  done.steps = engine_.server().version();
  done.samples = samples_;
  done.seconds = seconds(now() - started_);
  done.samples_per_s = steady_seconds_ > 0 ? static_cast<double>(steady_samples_) / steady_seconds_ : 0;
  done.loss = last_loss_;
  done.accuracy = accuracy_;
  done.has_accuracy = evaluated_once_ && options_.has_accuracy;
  done.predicted_samples_per_s = predicted_samples_per_s_;
  done.noise = noise_;
  done.checkpoint = checkpoint;
  sink_.take(done);
}

}  // namespace motley::runtime

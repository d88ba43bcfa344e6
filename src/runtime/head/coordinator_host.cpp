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
                                 observe::Observer& observer, std::function<void(Status)> on_end)
    : options_(std::move(options)),
      observer_(observer),
      on_end_(std::move(on_end)),
      engine_(within(options_.engine, redo_budget_), std::move(server), *this),
      invitations_(options_.token, options_.run_dir) {
  PersisterEvents events;
  events.checkpoint = [this](std::uint64_t step, const std::filesystem::path& path) {
    observe([step, path](observe::Observer& o) { o.checkpoint(step, path.string()); });
  };
  events.error = [this](const Error& error) { observe([error](observe::Observer& o) { o.error(error); }); };
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

void CoordinatorHost::observe(std::function<void(observe::Observer&)> call) {
  mailbox_->post([this, call = std::move(call)] { call(observer_); });
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
  observer_.note(formatted(
      "from step %llu on a step has %llu samples instead of %llu, because the gradient noise scale is %.0f samples; "
      "the learning rate is %.3g times the one that was set",
      static_cast<unsigned long long>(change.first_step) + 1, static_cast<unsigned long long>(change.batch),
      static_cast<unsigned long long>(step.global_batch), step.noise.scale.value_or(0), change.rate));
}

void CoordinatorHost::on_tick() {
  if (ended_) return;
  engine_.tick(now());
  end_faulty_sessions();
  send_away_revoked();
  judge_local_failures();
  if (ended_) return;
  observer_.waiting(engine_.waiting_for());
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

std::vector<observe::WorkerPart> CoordinatorHost::parts_of(const engine::StepClosed& step) {
  std::vector<observe::WorkerPart> parts;
  for (const engine::WorkerStep& worker : step.workers) {
    observe::WorkerPart part{.worker = worker.name,
                             .samples = worker.samples,
                             .compute_s = worker.compute_seconds,
                             .wait_s = worker.wait_seconds,
                             .finish_s = worker.finish_seconds};
    for (auto& [id, session] : sessions_) {
      if (session.name != worker.name || session.local) continue;
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
    parts.push_back(std::move(part));
  }
  return parts;
}

namespace {
observe::Noise event_of(const engine::Noise& noise) {
  return {noise.records, noise.scale.value_or(0), noise.useful_batch.value_or(0)};
}
}  // namespace

observe::PlanMade event_of(const engine::Planned& plan) {
  observe::PlanMade made;
  made.global_batch = plan.global_batch;
  made.step_s = plan.step.seconds;
  made.samples_per_s = plan.step.samples_per_second;
  made.recommendation = plan.advice.recommendation;
  made.limit = plan.advice.limit;
  made.noise = event_of(plan.noise);
  for (const plan::Outlook& worker : plan.workers) {
    made.shares.push_back({worker.name, worker.samples, worker.alone_samples_per_second, worker.compute_seconds,
                           worker.exposed_seconds, worker.codec, worker.up_bytes_per_second.value_or(0),
                           worker.down_bytes_per_second.value_or(0)});
    if (worker.alone_samples_per_second <= made.fastest_alone_samples_per_s) continue;
    made.fastest_alone = worker.name;
    made.fastest_alone_samples_per_s = worker.alone_samples_per_second;
  }
  return made;
}

void CoordinatorHost::worker_changed(const engine::WorkerChange& change) {
  constexpr const char* kWords[] = {"joined", "left", "lost", "excluded", "readmitted", "refused", "parked"};
  observer_.worker({change.name, change.machine, change.device, change.description,
                    kWords[static_cast<int>(change.event)], change.reason});
}

void CoordinatorHost::warning(std::string text) { observer_.note(text); }

void CoordinatorHost::planned(const engine::Planned& plan) {
  predicted_samples_per_s_ = plan.step.samples_per_second;
  observer_.plan(event_of(plan));
}

void CoordinatorHost::step_closed(const engine::StepClosed& step) {
  store::LedgerStep record{step.step, options_.engine.incarnation, step.weight, step.loss_sum, {}, {}};
  if (engine_.server().limits_norm()) record.gradient_norm = step.gradient_norm;
  for (const engine::CommittedRange& range : step.ranges)
    record.ranges.push_back({range.first, range.count, range.worker});
  persister_->step(std::move(record), step.gradients);
  if (step.batch_change) note_batch(step);

  const double elapsed = seconds(step.duration);
  // The first steps of a process pay for first touch and compilation; they are not the steady part.
  constexpr std::uint64_t kWarmUpSteps = 3;
  if (steps_ == kWarmUpSteps) steady_seconds_ = 0, steady_samples_ = 0;
  ++steps_;
  samples_ += step.samples;
  steady_seconds_ += elapsed;
  steady_samples_ += step.samples;
  last_loss_ = step.loss_sum / step.weight;
  note_position(step.step + 1);

  observe::StepDone done;
  done.step = step.step;
  done.epoch = step.epoch;
  done.samples = step.samples;
  done.loss = last_loss_;
  done.seconds = elapsed;
  done.samples_per_s = elapsed > 0 ? static_cast<double>(step.samples) / elapsed : 0;
  done.learning_rate = step.learning_rate;
  done.noise = noise_ = event_of(step.noise);
  done.global_batch = step.global_batch;
  done.steps = engine_.steps();
  done.workers = parts_of(step);
  observer_.step(done);
  if (options_.after_step) options_.after_step(step, engine_);

  const double since = seconds(now() - last_checkpoint_);
  const bool due =
      since >= options_.checkpoint_seconds || (since >= unlogged_seconds_ && persister_->wants_checkpoint());
  const bool newest = step.step + 1 == engine_.server().version();  // else its weights are gone
  if (due && newest && step.step + 1 < engine_.steps()) write_checkpoint();
}

observe::EvalDone CoordinatorHost::done_of(const engine::Evaluated& evaluation) const {
  observe::EvalDone done;
  done.step = evaluation.version;
  done.epoch = evaluation.epoch;
  done.samples = evaluation.samples;
  done.loss = evaluation.loss_sum / evaluation.weight;
  done.accuracy = static_cast<double>(evaluation.correct) / evaluation.weight;  // a text has many targets a sample
  done.has_accuracy = options_.has_accuracy;
  done.exact = evaluation.exact;
  for (std::size_t i = 0; i < options_.scores.size(); ++i) {
    const double sum = i < evaluation.scores.size() ? evaluation.scores[i] : 0;
    const double mean = sum / static_cast<double>(evaluation.samples);
    if (options_.scores[i] == "accuracy") done.accuracy = mean;
    done.scores.emplace_back(options_.scores[i], mean);
  }
  return done;
}

void CoordinatorHost::evaluated(const engine::Evaluated& evaluation) {
  const observe::EvalDone done = done_of(evaluation);
  accuracy_ = done.accuracy;
  evaluated_once_ = true;
  observer_.eval(done);
}

std::vector<double> CoordinatorHost::rates_after(const engine::Evaluated& evaluation) {
  return options_.rates_after ? options_.rates_after(done_of(evaluation)) : std::vector<double>();
}

// What a local worker has in hand may outlast the step that it was for.
void CoordinatorHost::held(std::uint64_t version, bool step) {
  const auto busy = std::make_shared<std::size_t>(1);
  const auto one_less = [this, busy, version, step] {
    if (--*busy == 0 && !ended_ && options_.held) options_.held(version, step, engine_);
  };
  for (const auto& [id, session] : sessions_) {
    const std::shared_ptr<ComputeThread> compute = session.compute.lock();
    if (compute == nullptr) continue;
    ++*busy;
    compute->when_idle([mailbox = mailbox_, one_less] { mailbox->post(one_less); });
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
  observer_.waiting("");
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
  observe::Done done;
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
  observer_.done(done);
}

}  // namespace motley::runtime

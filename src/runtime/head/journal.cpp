#include "runtime/head/journal.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "runtime/head/plan_modes.h"
#include "runtime/mailbox.h"
#include "runtime/persist/checkpoint_due.h"

namespace motley::runtime {
namespace {

PersisterEvents events_for(const std::function<void(report::Event)>& tell) {
  PersisterEvents events;
  events.checkpoint = [tell](std::uint64_t step, const std::filesystem::path& path) {
    tell(report::CheckpointWritten{step, path.string()});
  };
  events.error = [tell](const Error& error) { tell(report::Failure{error}); };
  return events;
}

}  // namespace

Journal::Journal(JournalOptions options, engine::Coordinator& engine, store::LedgerWriter ledger, report::Sink& sink,
                 const std::function<void(report::Event)>& tell)
    : options_(std::move(options)),
      engine_(engine),
      sink_(sink),
      persister_(options_.run_dir, std::move(ledger), events_for(tell)) {}

void Journal::begin() {
  started_ = last_checkpoint_ = now();
  note_position(engine_.server().version());
  const ps::Server& server = engine_.server();
  if (server.limits_norm() && !server.clips_by_step_before() && !server.outside())
    clipping_.emplace(server.layout().chunks().size());
}

void Journal::note_position(std::uint64_t step) {
  const StepRange range = engine_.range(step);
  epoch_ = range.epoch;
  position_ = range.order_first;
}

void Journal::step(const engine::StepClosed& step, const report::StepDone& done) {
  store::LedgerStep record = record_of(step, options_.incarnation, engine_.server().limits_norm());
  options_.since_eval_point.add(record, done.seconds, done.learning_rate);
  persister_.step(std::move(record));

  // The first steps of a process pay for first touch and compilation; they are not the steady part.
  constexpr std::uint64_t kWarmUpSteps = 3;
  if (steps_ == kWarmUpSteps) steady_seconds_ = 0, steady_samples_ = 0;
  ++steps_;
  samples_ += step.samples;
  verified_ += step.verified;
  steady_seconds_ += done.seconds;
  steady_samples_ += step.samples;
  last_loss_ = done.loss;
  if (step.drift) cosine_sum_ += *step.drift, ++cosines_;
  noise_ = done.noise;
  note_position(step.step + 1);
  sink_.take(done);
  advise(done);
  report_eval_point(step);

  const bool newest = step.step + 1 == engine_.server().version();  // else its weights are gone
  if (newest && step.step + 1 < engine_.steps() && wants_checkpoint()) write_checkpoint();
}

// The update of a step that one worker makes delays nobody else.
void Journal::advise(const report::StepDone& done) {
  const auto cost = clipping_ && done.workers.size() > 1 ? clipping_->step(done.seconds, done.update_s) : std::nullopt;
  if (!cost) return;
  sink_.take(report::AdviceGiven{
      .set = "train.clip_norm_of=previous",
      .saves_s = cost->waited_seconds,
      .step_s = cost->step_seconds,
      .sentence = "Clipping by the norm of the whole gradient makes all workers wait for the update, which begins when "
                  "the last gradient is in. With the norm of the step before, weights are updated and sent while "
                  "gradients arrive; what is clipped then differs a little."});
}

bool Journal::wants_checkpoint() {
  const std::optional<double> written = persister_.checkpoint_seconds();
  return written &&
         checkpoint_due(seconds(now() - last_checkpoint_), snapshot_seconds_ + *written, options_.checkpoint_seconds);
}

void Journal::report_eval_point(const engine::StepClosed& step) {
  const std::uint64_t version = step.step + 1;
  const bool at_eval_point = options_.eval_point_every > 0 ? version % options_.eval_point_every == 0
                                                           : engine_.range(version).order_first == 0;
  if (!at_eval_point && version < engine_.steps()) return;
  sink_.take(options_.since_eval_point.take(step.epoch, version, state_of(engine_.server(), false)));
}

report::EvalDone Journal::event(const engine::Evaluated& evaluation) const {
  return event_of(evaluation, options_.has_accuracy, options_.scores);
}

void Journal::evaluated(const engine::Evaluated& evaluation) {
  const report::EvalDone done = event(evaluation);
  accuracy_ = done.accuracy;
  evaluated_once_ = true;
  sink_.take(done);
}

void Journal::planned(const engine::Planned& plan, const std::optional<engine::Planned>& round) {
  predicted_samples_per_s_ = plan.step.samples_per_second;
  const report::PlanMade made = event_of(plan);
  sink_.take(made);
  if (!round || advised_rounds_) return;
  const auto advice = advise_rounds(made, event_of(*round), options_.rounds_possible, options_.outline);
  if (!advice) return;
  advised_rounds_ = true;
  sink_.take(*advice);
}

void Journal::resumed(const engine::Resume& resume, bool eval_point) {
  for (const BatchChange& change : resume.batches) persister_.batch(change);
  persister_.released(resume.version, eval_point, resume.state ? std::optional(engine_.state()) : std::nullopt);
}

void Journal::write_checkpoint() {
  last_checkpoint_ = now();
  if (const Status brought = engine_.download_state(); !brought) {
    return sink_.take(report::Note{"no checkpoint: " + brought.error().message});
  }
  store::CheckpointContent content = options_.checkpoint_base;
  ps::Snapshot snapshot = engine_.server().snapshot();
  content.step = snapshot.version;
  content.epoch = epoch_;
  content.position = position_;
  content.weights = std::move(snapshot.weights);
  content.optimizer = std::move(snapshot.optimizer);
  persister_.checkpoint(std::move(content));
  snapshot_seconds_ = seconds(now() - last_checkpoint_);
}

report::Done Journal::done(const std::string& checkpoint) const {
  report::Done done;
  done.steps = engine_.server().version();
  done.samples = samples_;
  done.verified = verified_;
  done.seconds = seconds(now() - started_);
  done.samples_per_s = steady_seconds_ > 0 ? static_cast<double>(steady_samples_) / steady_seconds_ : 0;
  done.loss = last_loss_;
  done.accuracy = accuracy_;
  done.has_accuracy = evaluated_once_ && options_.has_accuracy;
  done.predicted_samples_per_s = predicted_samples_per_s_;
  done.noise = noise_;
  done.checkpoint = checkpoint;
  done.local_steps = options_.local_steps;
  if (cosines_ > 0) done.cosine = cosine_sum_ / static_cast<double>(cosines_);
  return done;
}

}  // namespace motley::runtime

#include "runtime/head/events.h"

namespace motley::runtime {
namespace {

report::Noise event_of(const engine::Noise& noise) {
  return {noise.records, noise.scale.value_or(0), noise.useful_batch.value_or(0)};
}

}  // namespace

report::WorkerChanged event_of(const engine::WorkerChange& change) {
  constexpr const char* kWords[] = {"joined", "left", "lost", "excluded", "readmitted", "refused", "parked"};
  return {change.name,  change.machine, change.device, change.description, kWords[static_cast<int>(change.event)],
          change.reason};
}

report::PlanMade event_of(const engine::Planned& plan) {
  report::PlanMade made;
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

report::StepDone event_of(const engine::StepClosed& step, std::uint64_t steps) {
  report::StepDone done;
  done.step = step.step;
  done.epoch = step.epoch;
  done.samples = step.samples;
  done.loss = step.loss_sum / step.weight;
  done.seconds = seconds(step.duration);
  done.samples_per_s = done.seconds > 0 ? static_cast<double>(step.samples) / done.seconds : 0;
  done.learning_rate = step.learning_rate;
  done.gradient_norm = step.gradient_norm;
  done.noise = event_of(step.noise);
  done.global_batch = step.global_batch;
  done.steps = steps;
  for (const engine::WorkerStep& worker : step.workers) {
    done.workers.push_back({.worker = worker.name,
                            .samples = worker.samples,
                            .compute_s = worker.compute_seconds,
                            .wait_s = worker.wait_seconds,
                            .finish_s = worker.finish_seconds,
                            .ahead = worker.overlapped});
  }
  return done;
}

report::EvalDone event_of(const engine::Evaluated& evaluation, bool has_accuracy,
                          const std::vector<std::string>& scores) {
  report::EvalDone done;
  done.step = evaluation.version;
  done.epoch = evaluation.epoch;
  done.samples = evaluation.samples;
  done.loss = evaluation.loss_sum / evaluation.weight;
  done.accuracy = static_cast<double>(evaluation.correct) / evaluation.weight;  // a text has many targets a sample
  done.has_accuracy = has_accuracy;
  done.exact = evaluation.exact;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const double sum = i < evaluation.scores.size() ? evaluation.scores[i] : 0;
    const double mean = sum / static_cast<double>(evaluation.samples);
    if (scores[i] == "accuracy") done.accuracy = mean;
    done.scores.emplace_back(scores[i], mean);
  }
  return done;
}

report::ModelState state_of(const ps::Server& server, bool held) {
  ps::Snapshot handles = server.handles();
  report::ModelState state{.version = handles.version, .weights = std::move(handles.weights)};
  if (held) state.optimizer = std::move(handles.optimizer);
  return state;
}

store::LedgerStep record_of(const engine::StepClosed& step, std::uint32_t incarnation, bool with_norm) {
  store::LedgerStep record{step.step, incarnation, step.weight, step.loss_sum, {}, {}, {}};
  if (with_norm) record.gradient_norm = step.gradient_norm;
  for (const engine::CommittedRange& range : step.ranges)
    record.ranges.push_back({range.first, range.count, range.worker});
  for (const engine::CommittedLate& late : step.late) {
    if (record.late.empty() || record.late.back().step != late.step)
      record.late.push_back({.step = late.step, .at = step.step, .ranges = {}});
    record.late.back().ranges.push_back({late.range.first, late.range.count, late.range.worker});
  }
  return record;
}

void SinceEvalPoint::add(const store::LedgerStep& step, double seconds, double learning_rate) {
  if (samples_ == 0) learning_rate_ = learning_rate;
  loss_sum_ += step.loss_sum;
  weight_ += step.weight;
  seconds_ += seconds;
  for (const store::LedgerRange& range : step.ranges) samples_ += range.count;
  for (const store::LedgerLate& late : step.late)
    for (const store::LedgerRange& range : late.ranges) samples_ += range.count;
}

report::EvalPointReached SinceEvalPoint::take(std::uint64_t epoch, std::uint64_t version, report::ModelState state) {
  report::EvalPointReached eval_point{.epoch = epoch,
                                      .version = version,
                                      .samples = samples_,
                                      .loss = loss_sum_ / weight_,
                                      .seconds = seconds_,
                                      .learning_rate = learning_rate_,
                                      .state = std::move(state)};
  *this = {};
  return eval_point;
}

}  // namespace motley::runtime

// Arithmetic of a pass: summing, updating, closing.

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/assert.h"
#include "engine/coordinator_impl.h"
#include "plan/batch_size.h"

namespace motley::engine {
namespace {

constexpr std::uint64_t kBatchMax = std::uint64_t{1} << 24;

}  // namespace

// A run whose length is a number of epochs has a schedule that ends with them, however many steps they take.
std::vector<ps::RateChange> rate_changes(std::uint64_t first_batch, bool by_samples,
                                         std::span<const BatchChange> changes) {
  std::vector<ps::RateChange> result;
  for (const BatchChange& change : changes) {
    const double steps = static_cast<double>(change.batch) / static_cast<double>(first_batch);
    result.push_back({change.first_step, by_samples ? steps : 1, change.rate});
  }
  return result;
}

void Coordinator::Impl::reduce(ChunkId chunk) {
  const modes::Coverage& coverage = machine.coverage();
  parts.clear();
  const std::size_t elements = server.layout().chunks()[chunk].elements;
  for (const auto& piece : coverage.pieces(chunk)) parts.push_back(uploads.encoded(piece.lease, chunk, elements));
  // A pass without a single loss-bearing item has a gradient of zero, not zero divided by zero.
  const double weight = coverage.weight();
  const bool gradient = server.layout().chunks()[chunk].kind != ChunkKind::statistics;
  const std::span<double> squares = gradient ? norms.of(coverage.pieces(chunk), coverage) : std::span<double>();
  norms.add_mean(server.reduce(chunk, parts, weight > 0 ? weight : 1, coverage.positions(), squares));
  for (const auto& piece : coverage.pieces(chunk)) uploads.release(piece.lease, chunk);
  last_reduced = chunk;
  feed(modes::ChunkReduced{chunk});
}

// What needs the whole gradient.
void Coordinator::Impl::clip() {
  if (server.clips()) server.clip();
  if (server.outside()) {
    if (const Status done = server.step_outside(); !done) {
      failed = true;
      return output.failed(done.error());
    }
  }
  feed(modes::Clipped{});
}

void Coordinator::Impl::apply(ChunkId chunk) {
  if (!keeps_gradients) {
    const std::size_t bytes = server.layout().flat_elements() * sizeof(float);
    keeps_gradients = !options.wants_gradients || options.wants_gradients(bytes);
    gradients.resize(*keeps_gradients ? server.layout().chunks().size() : 0);
  }
  if (*keeps_gradients) gradients[chunk] = server.gradient(chunk);
  publish(chunk, server.apply(chunk));
  for (const fleet::Member& member : machine.members().all())
    if (member.streams) send_chunk(sessions.at(member.session), next, chunk, Lane::weights);
  feed(modes::ChunkApplied{chunk});
}

StepClosed Coordinator::Impl::describe_step() {
  const auto& pass = *machine.pass();
  const modes::Coverage& coverage = machine.coverage();
  StepClosed step{.step = machine.version(),
                  .epoch = pass.range.epoch,
                  .samples = pass.range.count,
                  .weight = coverage.weight(),
                  .loss_sum = coverage.loss_sum(),
                  .gradient_norm = server.gradient_norm(),
                  .learning_rate = server.learning_rate(0),
                  .noise = {},
                  .global_batch = machine.batches().batch(machine.version()),
                  .batch_change = {},
                  .duration = now - pass.opened,
                  .ranges = {},
                  .workers = {},
                  .gradients = std::exchange(gradients, {})};
  keeps_gradients.reset();
  std::uint64_t covered = 0;
  for (const auto& piece : coverage.pieces(last_reduced)) {
    MOTLEY_ASSERT(piece.range.first == covered);
    covered += piece.range.count;
    const fleet::WorkerId worker = machine.lease(piece.lease)->worker;
    step.ranges.push_back({piece.range.first, piece.range.count, name_of(worker)});
    const auto known = std::find_if(step.workers.begin(), step.workers.end(),
                                    [&](const WorkerStep& part) { return part.worker == worker; });
    if (known != step.workers.end()) {
      known->samples += piece.range.count;
      continue;
    }
    const Worker& from = workers[worker - 1];
    step.workers.push_back(
        {worker, from.name, piece.range.count, from.compute_seconds, from.wait_seconds, from.finish_seconds});
  }
  MOTLEY_ASSERT(covered == pass.range.count);
  return step;
}

void Coordinator::Impl::close_step() {
  StepClosed step = describe_step();
  if (const auto estimate = norms.close(step.samples)) noise.record(*estimate);
  step.noise = noise_now();
  step.batch_change = next_batch(step);
  const std::uint64_t pass = machine.pass()->id.pack();
  server.finish_step();
  MOTLEY_ASSERT(server.version() == step.step + 1 && next.version() == server.version());
  std::swap(current, next);
  next.clear();
  next.set_version(server.version() + 1);
  uploads.clear();
  if (step.batch_change) {
    batch_news = true;
    machine.change_batch(step.batch_change->batch, step.batch_change->rate);
    options.batch_changes.push_back(*step.batch_change);
    server.set_rate_changes(rate_changes(options.global_batch, options.epochs > 0, options.batch_changes));
  }
  for (const fleet::Member& member : machine.members().all()) {
    if (!member.streams) continue;
    Session& session = sessions.at(member.session);
    session.holds = server.version();
    send_control(session, wire::PassClosed{pass, server.version()});
  }
  pace.closed(step.duration);
  for (const fleet::Member& member : machine.members().all())
    if (member.share > 0) pace.weigh_codec(member.worker);
  output.step_closed(step);
  feed(modes::PassFinished{});
}

Noise Coordinator::Impl::noise_now() const {
  Noise known{.records = noise.records(), .scale = noise.samples(), .useful_batch = {}};
  const std::optional<double> lost = pace.lost_samples();
  if (known.scale && lost) known.useful_batch = plan::useful_batch(*lost, *known.scale);
  return known;
}

std::optional<BatchChange> Coordinator::Impl::next_batch(const StepClosed& step) const {
  if (!options.adapt_batch || !step.noise.useful_batch || step.step + 1 >= machine.steps()) return std::nullopt;
  const plan::BatchRule rule{.first = std::min(options.global_batch, options.train_samples),
                             .most = std::min(kBatchMax, options.train_samples),
                             .grain = options.grain,
                             .adaptive = options.adaptive_optimizer};
  const std::uint64_t since =
      step.step + 1 - (options.batch_changes.empty() ? 0 : options.batch_changes.back().first_step);
  const std::optional<plan::BatchSize> size =
      plan::next_batch(rule, step.global_batch, since, *step.noise.scale, *step.noise.useful_batch);
  if (!size) return std::nullopt;
  return BatchChange{step.step + 1, size->batch, size->rate};
}

void Coordinator::Impl::close_evaluation() {
  const auto& pass = *machine.pass();
  const modes::Coverage& coverage = machine.coverage();
  Evaluated result{.version = machine.version(), .epoch = pass.range.epoch, .samples = pass.range.count};
  result.exact = held_exactly();
  for (const auto& piece : coverage.pieces(0)) {
    const modes::Contribution* part = coverage.find(piece.lease);
    MOTLEY_ASSERT(part != nullptr);
    result.correct += part->correct;
    result.weight += part->weight;
    result.loss_sum += part->loss_sum;
    const std::vector<double>& more = scores[piece.lease];
    result.scores.resize(std::max(result.scores.size(), more.size()));
    for (std::size_t i = 0; i < more.size(); ++i) result.scores[i] += more[i];
  }
  scores.clear();
  const std::uint64_t id = pass.id.pack();
  for (const fleet::Member& member : machine.members().all())
    if (member.streams) send_control(sessions.at(member.session), wire::PassClosed{id, machine.version()});
  output.evaluated(result);
  if (options.rates_follow_evaluations) {
    if (auto lr = output.rates_after(result); !lr.empty()) server.follow({machine.version(), std::move(lr)});
  }
  feed(modes::PassFinished{});
}

bool Coordinator::Impl::held_exactly() const {
  for (ChunkId chunk = 0; chunk < server.layout().chunks().size(); ++chunk)
    if (current.held(chunk).bytes().data() != server.weights(chunk).bytes().data()) return false;
  return true;
}

void Coordinator::Impl::evaluated_aside(const wire::Finish& finish) {
  const modes::Aside aside = *machine.aside();
  // Where losses are not finite the newest version will not be better; a pass of everybody says so.
  const bool whole = finish.count == options.test_samples && std::isfinite(finish.weight) && finish.weight >= 0 &&
                     finish.correct <= static_cast<std::uint64_t>(finish.weight);
  if (whole) {
    output.evaluated({.version = aside.version,
                      .epoch = aside.epoch,
                      .samples = finish.count,
                      .correct = finish.correct,
                      .weight = finish.weight,
                      .loss_sum = finish.loss_sum,
                      .exact = aside_exact,
                      .scores = finish.scores});
  }
  feed(modes::EvaluatedAside{aside.session, aside.lease, whole});
}

void Coordinator::Impl::diverged(const modes::Action& action) {
  failed = true;
  output.failed({ErrorCode::diverged,
                 "step " + std::to_string(machine.version()) +
                     " gives a gradient or loss that is not finite for positions " +
                     std::to_string(action.range.first) + " to " + std::to_string(action.range.end() - 1) +
                     " of the batch, computed twice",
                 "lower optimizer.lr, set train.clip_norm, or look at these samples with motley audit --order"});
}

}  // namespace motley::engine

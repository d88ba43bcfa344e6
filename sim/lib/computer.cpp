#include "sim/computer.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "base/assert.h"
#include "compute/probe.h"
#include "data/order.h"

namespace motley::sim {
namespace {

constexpr std::chrono::microseconds kChunkTime{300};  // between two chunks of a gradient

}  // namespace

class Computer::OrderWeights final : public Weights {
 public:
  explicit OrderWeights(const Computer& computer) : computer_(computer) {}
  std::span<const float> get(ChunkId chunk) override { return computer_.order_->weights.at(chunk).floats(); }
  [[nodiscard]] bool here(ChunkId chunk) const override { return !computer_.order_->weights.at(chunk).empty(); }

 private:
  const Computer& computer_;
};

class Computer::OrderStop final : public Stop {
 public:
  explicit OrderStop(Computer& computer) : range_(computer.range_) {}
  [[nodiscard]] std::uint64_t limit() const noexcept override { return range_.limit(); }
  [[nodiscard]] bool claim(std::uint64_t count) const noexcept override { return range_.claim(count); }

 private:
  compute::TaskRange& range_;
};

/// Progress is told at once; the gradient is kept until its time has come.
class Computer::Reports final : public Sink {
 public:
  explicit Reports(Computer& computer) : computer_(computer) {}
  void progress(std::uint64_t done) noexcept override {
    if (computer_.order_) computer_.worker_->task_progress(computer_.order_->number, done, computer_.process_.now());
  }
  void begin(std::uint64_t count, double, double) noexcept override { computer_.range_.freeze(count); }
  void ready(ChunkId chunk, std::span<const float> sum) noexcept override {
    computer_.gradient_.chunks.at(chunk) = SharedBytes::copy_of(std::as_bytes(sum));
  }

 private:
  Computer& computer_;
};

Data make_data(const RunSetup& run) {
  const softmax::BlobSizes train{run.train_samples, run.features, run.classes};
  const softmax::BlobSizes test{run.test_samples, run.features, run.classes};
  Data data{.train = std::make_shared<softmax::Blobs>(train, softmax::Part::train), .test = nullptr};
  if (test.samples > 0) data.test = std::make_shared<softmax::Blobs>(test, softmax::Part::test);
  return data;
}

Computer::Computer(Process& process, const RunSetup& run, const WorkerSetup& setup, std::uint64_t stream)
    : process_(process),
      run_(run),
      setup_(setup),
      random_(run.seed, stream),
      weights_(std::make_unique<OrderWeights>(*this)),
      stop_(std::make_unique<OrderStop>(*this)),
      reports_(std::make_unique<Reports>(*this)) {}

Computer::~Computer() = default;

void Computer::build(const Data& data) {
  train_ = data.train;
  auto model = softmax::SoftmaxRegression::make(data.train, data.test, run_.seed);
  MOTLEY_ASSERT(model.ok());
  loop_.reset();
  model_ = std::move(*model);
  loop_.emplace(*model_);
  local_.reset();
  if (run_.local_steps > 0)
    local_.emplace(model_->layout(), engine::LocalRules{.optimizer = run_.optimizer,
                                                        .schedule = run_.schedule,
                                                        .clip_norm = run_.clip_norm,
                                                        .batch = run_.local_batch,
                                                        .samples = run_.train_samples});
  order_.reset();
  soloist_.reset();
  cut_ = 0;
}

void Computer::start(engine::TaskOrder order, engine::Worker& worker,
                     std::function<void(const engine::TaskOrder&)> computes) {
  MOTLEY_ASSERT(!order_ && model_);
  worker_ = &worker;
  computes_ = std::move(computes);
  held_up_.reset();
  waited_ = {};
  range_.reset(order.limit);
  started_ = process_.now();
  order_ = std::move(order);
  if (order_->kind == PassKind::probe) return start_probe();
  if (!waits()) computes_(*order_);
  if (order_->local_steps > 0) {
    in_round_ = false;
    return next_local_step();
  }
  task_ = task_of(*order_);
  gradient_.chunks.assign(order_->weights.size(), {});
  loop_->open(task_, *weights_, *reports_, *stop_);
  next_micro_batch();
}

void Computer::start_probe() {
  std::vector<std::uint64_t> samples(order_->count);
  std::iota(samples.begin(), samples.end(), 0);
  Task like;
  like.indices = samples;
  like.micro_batch = setup_.micro_batch;
  like.seed = run_.seed;
  const Result<std::vector<float>> found = compute::probe(*loop_, model_->layout(), like);
  MOTLEY_ASSERT(found.ok());
  gradient_.outcome = {};
  gradient_.outcome.count = order_->count;
  gradient_.outcome.probe = *found;
  process_.later(time_for(samples.size()), [this] { finish(); });
}

bool Computer::waits() const { return std::ranges::any_of(order_->weights, &SharedBytes::empty); }

void Computer::arrived(std::uint64_t number, ChunkId chunk, SharedBytes weights) {
  if (!order_ || order_->number != number || !order_->weights[chunk].empty()) return;
  order_->weights[chunk] = std::move(weights);
  if (waits()) return;
  if (range_.limit() > 0) computes_(*order_);
  wake();
}

void Computer::wake() {
  const auto held_up = std::exchange(held_up_, std::nullopt);
  if (!held_up) return;
  waited_ += process_.now() - *held_up;
  process_.later(Duration(0), [this] {
    if (order_->local_steps > 0) return next_local_step();
    end_micro_batch();
  });
}

std::uint64_t Computer::limit(std::uint64_t number, std::uint64_t count) {
  if (!order_ || order_->number != number || range_.limit() == 0) return 0;
  const std::uint64_t holds = range_.set_limit(count);
  if (count == 0) wake();
  return holds;
}

Duration Computer::time_for(std::uint64_t samples) {
  const double jitter = 1 + setup_.jitter * (2 * random_.uniform() - 1);
  const double time = static_cast<double>(samples) / (setup_.samples_per_second * speed_factor_) * jitter;
  return Duration(static_cast<std::int64_t>(time * 1e9) + 1) + std::exchange(delay_, Duration{});
}

void Computer::finish_early(std::uint64_t number) {
  if (order_ && order_->number == number) range_.finish_early();
}

void Computer::next_micro_batch() {
  const std::uint64_t count = loop_->claim();
  if (count == 0) return complete();
  process_.later(time_for(count), [this] { end_micro_batch(); });
}

void Computer::end_micro_batch() {
  if (range_.limit() == 0) return complete();
  if (waits()) {
    held_up_ = process_.now();
    return;
  }
  loop_->compute();
  next_micro_batch();
}

Task Computer::task_of(const engine::TaskOrder& order) {
  const bool train = order.kind == PassKind::train;
  const std::uint64_t size = order.kind == PassKind::evaluate ? run_.test_samples : run_.train_samples;
  indices_.resize(order.count);
  const data::SampleOrder samples(run_.seed, order.epoch, size, train);
  if (train && run_.skewed) {
    fill_by_class(samples, order);
  } else {
    samples.fill(order.pass_first + order.first, indices_);
  }
  Task task;
  task.kind = order.kind;
  task.version = order.version;
  task.indices = indices_;
  task.first = order.first;
  task.from_end = order.from_end;
  task.micro_batch = setup_.micro_batch;
  task.seed = run_.seed;
  return task;
}

void Computer::complete() {
  const Result<Outcome> outcome = loop_->close();
  MOTLEY_ASSERT(outcome.ok());
  gradient_.outcome = *outcome;
  if (outcome->count == 0) {
    const std::uint64_t number = order_->number;
    order_.reset();
    worker_->task_finished(number, Outcome{}, 0, 0, process_.now());
    if (soloist_) next_delegated_step();
    return;
  }
  range_.freeze(outcome->count);
  if (order_->kind != PassKind::train) {
    finish();
    return;
  }
  spoil();
  worker_->task_begin(order_->number, outcome->count, {outcome->weight, outcome->loss_sum}, process_.now());
  emit(0);
}

void Computer::emit(std::size_t chunk) {
  process_.later(kChunkTime, [this, chunk] {
    worker_->task_chunk(order_->number, static_cast<ChunkId>(chunk), gradient_.chunks[chunk], process_.now());
    if (chunk + 1 < gradient_.chunks.size()) {
      emit(chunk + 1);
    } else {
      finish();
    }
  });
}

void Computer::finish() {
  const std::uint64_t number = order_->number;
  order_.reset();  // before the report: the answer may be the next task
  worker_->task_finished(number, gradient_.outcome, seconds(process_.now() - started_ - waited_), seconds(waited_),
                         process_.now());
  if (soloist_ && !order_) next_delegated_step();
}

// --- rounds ---

void Computer::next_local_step() {
  if (range_.limit() < order_->count) return end_round(false);
  if (!in_round_) {
    const Result<bool> overlapped = local_->open_overlapped(*order_, nullptr);
    MOTLEY_ASSERT(overlapped.ok());
    if (!*overlapped && waits()) {
      held_up_ = process_.now();
      return;
    }
    in_round_ = true;
    indices_ = data::samples_at(order_->spans, run_.seed, run_.train_samples, true);
    const Status opened = *overlapped ? Status() : local_->open(*order_, order_->weights, nullptr);
    MOTLEY_ASSERT(opened.ok());
  }
  if (local_->waits() && waits() && local_->made_all_overlapped()) {
    held_up_ = process_.now();
    return;
  }
  if (local_->waits() && !waits()) {
    const Status rebased = local_->rebase(order_->weights);
    MOTLEY_ASSERT(rebased.ok());
  }
  if (!local_->more()) return end_round(true);
  process_.later(time_for(local_->part().count), [this] { make_local_step(); });
}

void Computer::make_local_step() {
  if (range_.limit() < order_->count) return end_round(false);
  const engine::LocalSteps::Part part = local_->part();
  Task task;
  task.version = local_->version();
  task.indices = std::span(indices_).subspan(part.first, part.count);
  task.first = order_->first + part.first;
  task.micro_batch = setup_.micro_batch;
  task.seed = run_.seed;
  loop_->forget_weights();
  const Result<Outcome> outcome = loop_->run(task, *local_, *local_, *stop_);
  MOTLEY_ASSERT(outcome.ok() && outcome->count == part.count);
  const Status took = local_->took(*outcome);
  MOTLEY_ASSERT(took.ok());
  worker_->task_progress(order_->number, local_->done(), process_.now());
  if (order_) next_local_step();
}

void Computer::end_round(bool whole) {
  loop_->forget_weights();
  if (!whole) {
    local_->drop();
    const std::uint64_t number = order_->number;
    order_.reset();
    return worker_->task_finished(number, Outcome{}, 0, 0, process_.now());
  }
  const Status closed = local_->close();
  MOTLEY_ASSERT(closed.ok());
  range_.freeze(order_->count);
  gradient_.chunks.clear();
  for (const Chunk& chunk : model_->layout().chunks()) {
    std::vector<float> change(chunk.elements);
    local_->change(static_cast<ChunkId>(gradient_.chunks.size()), change);
    gradient_.chunks.push_back(SharedBytes::copy_of(std::as_bytes(std::span(change))));
  }
  gradient_.outcome = {.count = order_->count,
                       .weight = local_->weight(),
                       .loss_sum = local_->loss_sum(),
                       .micro_batch = setup_.micro_batch};
  spoil();
  worker_->task_begin(order_->number, order_->count, {local_->weight(), local_->loss_sum(), local_->overlapped()},
                      process_.now());
  emit(0);
}

// --- steps without asking ---

void Computer::delegate(engine::DelegatedSteps order, DelegatedStepEvents events) {
  soloist_.emplace(std::move(order));
  delegated_step_events_ = std::move(events);
  if (!order_) next_delegated_step();
}

void Computer::next_delegated_step() {
  if (!soloist_->more() || cut_ == soloist_->number()) return end_delegation({});
  const Duration time = time_for(soloist_->pass().count);
  process_.later(time, [this, number = soloist_->number(), version = soloist_->version(), time] {
    if (soloist_ && !order_ && soloist_->number() == number && soloist_->version() == version)
      make_delegated_step(seconds(time));
  });
}

void Computer::make_delegated_step(double seconds) {
  const StepRange pass = soloist_->pass();
  engine::TaskOrder order;
  order.version = soloist_->version();
  order.epoch = pass.epoch;
  order.pass_first = pass.order_first;
  order.count = pass.count;
  const Task task = task_of(order);
  range_.reset(pass.count);
  gradient_.chunks.assign(model_->layout().chunks().size(), {});
  const Result<Outcome> outcome = loop_->run(task, *soloist_, *reports_, *stop_);
  MOTLEY_ASSERT(outcome.ok() && outcome->count == pass.count);
  spoil();
  soloist_->begin(outcome->count, outcome->weight, outcome->loss_sum);
  for (ChunkId chunk = 0; chunk < gradient_.chunks.size(); ++chunk)
    soloist_->ready(chunk, gradient_.chunks[chunk].floats());
  if (const Status took = soloist_->took(*outcome); !took) return end_delegation(took.error());
  const Result<engine::DelegatedStep> step = soloist_->finish(seconds, process_.now());
  if (!step) return end_delegation(step.error());
  delegated_step_events_.step(*step);
  next_delegated_step();
}

void Computer::end_delegation(const std::optional<Error>& failure) {
  const engine::DelegationEnd end{.number = soloist_->number(), .failure = failure, .after = {}};
  const DelegatedStepEvents events = std::move(delegated_step_events_);
  soloist_.reset();
  events.ended(end);
}

}  // namespace motley::sim

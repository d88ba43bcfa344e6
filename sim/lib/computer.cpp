#include "sim/computer.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "base/assert.h"
#include "data/order.h"

namespace motley::sim {
namespace {

constexpr std::chrono::microseconds kChunkTime{300};  // between two chunks of a gradient

class HeldWeights final : public Weights {
 public:
  explicit HeldWeights(const std::vector<SharedBytes>& chunks) : chunks_(chunks) {}
  std::span<const float> get(ChunkId chunk) override { return chunks_.at(chunk).floats(); }

 private:
  const std::vector<SharedBytes>& chunks_;
};

class Collect final : public Sink {
 public:
  explicit Collect(std::vector<SharedBytes>& chunks) : chunks_(chunks) {}
  void progress(std::uint64_t) noexcept override {}
  void begin(std::uint64_t, double, double) noexcept override {}
  void ready(ChunkId chunk, std::span<const float> sum) noexcept override {
    chunks_[chunk] = SharedBytes::copy_of(std::as_bytes(sum));
  }

 private:
  std::vector<SharedBytes>& chunks_;
};

class NoStop final : public Stop {
 public:
  explicit NoStop(std::uint64_t count) : count_(count) {}
  [[nodiscard]] std::uint64_t limit() const noexcept override { return count_; }

 private:
  std::uint64_t count_;
};

}  // namespace

Result<Data> open_data(const RunSetup& run) {
  const auto open = [&](std::uint64_t size, const std::string& part) {
    const std::string uri =
        "synthetic:" + std::to_string(size) + ":" + std::to_string(run.features) + ":" + std::to_string(run.classes);
    return data::open_dataset(uri, part, {});
  };
  Data data;
  Result<std::shared_ptr<const data::Dataset>> train = open(run.train_samples, "train");
  if (!train) return std::move(train).error();
  data.train = std::move(*train);
  if (run.test_samples == 0) return data;
  Result<std::shared_ptr<const data::Dataset>> test = open(run.test_samples, "test");
  if (!test) return std::move(test).error();
  data.test = std::move(*test);
  return data;
}

Computer::Computer(Process& process, const RunSetup& run, const WorkerSetup& setup, std::uint64_t stream)
    : process_(process), run_(run), setup_(setup), random_(run.seed, stream) {}

void Computer::build(const Data& data) {
  auto model = softmax::SoftmaxRegression::make(data.train, data.test, run_.seed);
  MOTLEY_ASSERT(model.ok());
  model_ = std::move(*model);
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
  limit_ = order.limit;
  claimed_ = done_ = 0;
  frozen_ = enough_ = false;
  started_ = process_.now();
  order_ = std::move(order);
  if (!waits()) computes_(*order_);
  next_micro_batch();
}

bool Computer::waits() const { return std::ranges::any_of(order_->weights, &SharedBytes::empty); }

void Computer::arrived(std::uint64_t number, ChunkId chunk, SharedBytes weights) {
  if (!order_ || order_->number != number || !order_->weights[chunk].empty()) return;
  order_->weights[chunk] = std::move(weights);
  if (waits()) return;
  if (limit_ > 0) computes_(*order_);
  wake();
}

void Computer::wake() {
  const auto held_up = std::exchange(held_up_, std::nullopt);
  if (!held_up) return;
  waited_ += process_.now() - held_up->since;
  process_.later(Duration(0), [this, held_up] { end_micro_batch(held_up->samples); });
}

std::uint64_t Computer::limit(std::uint64_t number, std::uint64_t count) {
  if (!order_ || order_->number != number || limit_ == 0) return 0;
  if (count == 0) {
    limit_ = 0;
    wake();
  } else if (!frozen_) {
    limit_ = std::max(enough_ ? std::min(count, limit_) : count, claimed_);
  }
  return limit_;
}

Duration Computer::time_for(std::uint64_t samples) {
  const double jitter = 1 + setup_.jitter * (2 * random_.uniform() - 1);
  const double time = static_cast<double>(samples) / (setup_.samples_per_second * speed_factor_) * jitter;
  return Duration(static_cast<std::int64_t>(time * 1e9) + 1) + std::exchange(delay_, Duration{});
}

void Computer::finish_early(std::uint64_t number) {
  if (!order_ || order_->number != number) return;
  enough_ = true;
  if (!frozen_) limit_ = std::min(limit_, claimed_);
}

void Computer::next_micro_batch() {
  const std::uint64_t count = std::min<std::uint64_t>(setup_.micro_batch, limit_ > done_ ? limit_ - done_ : 1);
  claimed_ = done_ + count;
  process_.later(time_for(count), [this, count] { end_micro_batch(count); });
}

void Computer::end_micro_batch(std::uint64_t count) {
  if (limit_ == 0) {
    const std::uint64_t number = order_->number;
    order_.reset();
    worker_->task_finished(number, Outcome{}, 0, 0, process_.now());
    if (soloist_) next_lent_step();
    return;
  }
  if (waits()) {
    held_up_ = HeldUp{count, process_.now()};
    return;
  }
  done_ += count;
  worker_->task_progress(order_->number, done_, process_.now());
  if (done_ >= limit_ && limit_ > 0) {
    complete();
  } else {
    next_micro_batch();
  }
}

Computer::Gradient Computer::compute(const engine::TaskOrder& order, std::uint64_t count) {
  const bool train = order.kind == PassKind::train;
  const std::uint64_t size = order.kind == PassKind::evaluate ? run_.test_samples : run_.train_samples;
  const data::SampleOrder samples(run_.seed, order.epoch, size, train);
  std::vector<std::uint64_t> indices(count);
  const std::uint64_t first = order.from_end ? order.first + order.count - count : order.first;
  samples.fill(order.pass_first + first, indices);
  Task task;
  task.kind = order.kind;
  task.version = order.version;
  task.indices = indices;
  task.first = first;
  task.from_end = order.from_end;
  task.micro_batch = setup_.micro_batch;
  task.seed = run_.seed;
  Gradient gradient;
  gradient.chunks.resize(order.weights.size());
  HeldWeights weights(order.weights);
  Collect sink(gradient.chunks);
  const NoStop stop(count);
  Result<Outcome> outcome = model_->run(task, weights, sink, stop);
  MOTLEY_ASSERT(outcome.ok() && outcome->count == count);
  gradient.outcome = *outcome;
  return gradient;
}

void Computer::spoil(SharedBytes& chunk) {
  const auto sound = chunk.floats();
  std::vector<float> spoiled(sound.begin(), sound.end());
  for (float& value : spoiled) value *= scale_;
  if (poison_) spoiled[random_.below(spoiled.size())] = std::numeric_limits<float>::quiet_NaN();
  chunk = SharedBytes::copy_of(std::as_bytes(std::span(spoiled)));
  poison_ = false;
  scale_ = 1;
}

void Computer::complete() {
  frozen_ = true;
  gradient_ = compute(*order_, done_);
  if (order_->kind != PassKind::train) {
    finish();
    return;
  }
  if (poison_ || scale_ != 1) spoil(gradient_.chunks[random_.below(gradient_.chunks.size())]);
  worker_->task_begin(order_->number, gradient_.outcome.count, gradient_.outcome.weight, gradient_.outcome.loss_sum,
                      process_.now());
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
  if (soloist_ && !order_) next_lent_step();
}

// --- steps without asking ---

void Computer::lend(engine::StretchOrder order, StretchEvents events) {
  soloist_.emplace(std::move(order));
  stretch_events_ = std::move(events);
  if (!order_) next_lent_step();
}

void Computer::next_lent_step() {
  if (!soloist_->more() || cut_ == soloist_->number()) return end_stretch({});
  const Duration time = time_for(soloist_->pass().count);
  process_.later(time, [this, number = soloist_->number(), version = soloist_->version(), time] {
    if (soloist_ && soloist_->number() == number && soloist_->version() == version) make_lent_step(seconds(time));
  });
}

void Computer::make_lent_step(double seconds) {
  const StepRange pass = soloist_->pass();
  engine::TaskOrder order;
  order.version = soloist_->version();
  order.epoch = pass.epoch;
  order.pass_first = pass.order_first;
  for (ChunkId chunk = 0; chunk < model_->layout().chunks().size(); ++chunk)
    order.weights.push_back(SharedBytes::copy_of(std::as_bytes(soloist_->get(chunk))));
  while (!soloist_->whole()) {
    const engine::Soloist::Part part = soloist_->part();
    order.first = part.first;
    Gradient gradient = compute(order, part.count);
    if (poison_ || scale_ != 1) spoil(gradient.chunks[random_.below(gradient.chunks.size())]);
    soloist_->begin(gradient.outcome.count, gradient.outcome.weight, gradient.outcome.loss_sum);
    for (ChunkId chunk = 0; chunk < gradient.chunks.size(); ++chunk)
      soloist_->ready(chunk, gradient.chunks[chunk].floats());
    if (const Status took = soloist_->took(gradient.outcome); !took) return end_stretch(took.error());
  }
  const Result<engine::StretchStep> step = soloist_->finish(seconds, process_.now());
  if (!step) return end_stretch(step.error());
  stretch_events_.step(*step);
  next_lent_step();
}

void Computer::end_stretch(const std::optional<Error>& failure) {
  const engine::StretchEnd end{.number = soloist_->number(), .failure = failure, .after = {}};
  const StretchEvents events = std::move(stretch_events_);
  soloist_.reset();
  events.ended(end);
}

}  // namespace motley::sim

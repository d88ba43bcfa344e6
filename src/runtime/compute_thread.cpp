#include "runtime/compute_thread.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "base/assert.h"
#include "base/spare_memory.h"
#include "data/order.h"
#include "runtime/mailbox.h"
#include "runtime/thread_priority.h"

namespace motley::runtime {
namespace {

class TaskWeights final : public Weights {
 public:
  explicit TaskWeights(const std::vector<SharedBytes>& chunks) : chunks_(chunks) {}
  std::span<const float> get(ChunkId chunk) override { return chunks_.at(chunk).floats(); }

 private:
  const std::vector<SharedBytes>& chunks_;
};

// What a first sample is computed with, before there are weights: its memory is that of any other.
class ZeroWeights final : public Weights {
 public:
  explicit ZeroWeights(const Layout& layout) : layout_(layout) {
    std::size_t longest = 0;
    for (const Chunk& chunk : layout.chunks()) longest = std::max<std::size_t>(longest, chunk.elements);
    zeros_.resize(longest);
  }
  std::span<const float> get(ChunkId chunk) override { return {zeros_.data(), layout_.chunks()[chunk].elements}; }

 private:
  const Layout& layout_;
  std::vector<float> zeros_;
};

class NoSink final : public Sink {
 public:
  void progress(std::uint64_t) noexcept override {}
  void begin(std::uint64_t, double, double) noexcept override {}
  void ready(ChunkId, std::span<const float>) noexcept override {}
};

class NoStop final : public Stop {
 public:
  [[nodiscard]] std::uint64_t limit() const noexcept override { return std::numeric_limits<std::uint64_t>::max(); }
};

// How often to look whether others want the memory. It takes a fraction of a millisecond.
constexpr Duration kMemoryEvery = std::chrono::seconds(1);
constexpr Duration kWorthTiming = std::chrono::milliseconds(5);  // what is shorter measures the start

std::uint64_t less(std::uint64_t a, std::uint64_t b) noexcept { return a > b ? a - b : 0; }

}  // namespace

// Passes results on, once each: after an out-of-memory retry the range and the chunks that went out already stand.
class ComputeThread::TaskSink final : public Sink {
 public:
  TaskSink(const ComputeEvents& events, std::uint64_t task, std::size_t chunks, BufferPool& pool)
      : events_(events), task_(task), sent_(chunks), pool_(pool) {}
  void progress(std::uint64_t done) noexcept override {
    done_ = done;
    events_.progress(task_, done);
  }
  void begin(std::uint64_t count, double weight, double loss_sum) noexcept override {
    if (begun()) return;
    MOTLEY_ASSERT(count > 0);
    frozen_ = count;
    events_.begin(task_, count, weight, loss_sum);
  }
  void ready(ChunkId chunk, std::span<const float> gradient) noexcept override {
    MOTLEY_ASSERT(begun() && chunk < sent_.size());
    if (sent_[chunk].exchange(true)) return;
    MutableBytes copy = pool_.take(gradient.size_bytes());
    std::memcpy(copy.bytes().data(), gradient.data(), gradient.size_bytes());
    events_.chunk(task_, chunk, std::move(copy).seal());
  }
  [[nodiscard]] bool begun() const noexcept { return frozen_ > 0; }
  /// The computation starts from its first sample again.
  void restart() noexcept { done_ = 0; }
  [[nodiscard]] std::uint64_t done() const noexcept { return done_; }
  /// The samples in the range; REQUIRES begun().
  [[nodiscard]] std::uint64_t frozen() const noexcept { return frozen_; }

 private:
  const ComputeEvents& events_;
  std::uint64_t task_;
  std::vector<std::atomic<bool>> sent_;
  BufferPool& pool_;
  std::atomic<std::uint64_t> frozen_{0}, done_{0};
};

// Once the range is frozen it can only be abandoned: what a retry sends must be of the same samples.
class ComputeThread::TaskStop final : public Stop {
 public:
  TaskStop(ComputeThread& thread, const TaskSink& sink) : thread_(thread), sink_(sink) {}
  // Asked between micro-batches, after what is done was reported: the place to rest, and to heed what came meanwhile.
  [[nodiscard]] std::uint64_t limit() const noexcept override {
    if (thread_.manners_.share < 1) thread_.rest(sink_);
    const std::uint64_t limit = thread_.limit_.load(std::memory_order_relaxed);
    if (limit > 0 && sink_.begun()) return sink_.frozen();
    return thread_.enough_ ? std::min(limit, sink_.done()) : limit;
  }

 private:
  ComputeThread& thread_;
  const TaskSink& sink_;
};

ComputeThread::ComputeThread(ComputeEvents events, Manners manners)
    : events_(std::move(events)), manners_(manners), duty_(manners.share), thread_([this] { loop(); }) {
  MOTLEY_ASSERT(manners.share > 0 && manners.share <= 1);
}

ComputeThread::~ComputeThread() { stop(); }

void ComputeThread::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    limit_ = 0;
  }
  arrived_.notify_one();
  thread_.join();
}

void ComputeThread::prepare(std::function<Result<Prepared>()> build, std::function<void(Result<const Layout*>)> done) {
  {
    const std::lock_guard lock(mutex_);
    preparation_ = [this, build = std::move(build), done = std::move(done)] {
      Result<Prepared> prepared = build();
      if (!prepared) {
        done(prepared.error());
        return;
      }
      prepared_ = std::move(*prepared);
      if (Status fits = find_micro_batch(); !fits) {
        done(fits.error());
        return;
      }
      done(&prepared_.computation->layout());
    };
  }
  arrived_.notify_one();
}

void ComputeThread::start(engine::TaskOrder order) {
  {
    const std::lock_guard lock(mutex_);
    MOTLEY_ASSERT(!next_.has_value());
    current_task_ = order.number;
    limit_ = order.count;
    enough_ = false;
    next_ = std::move(order);
  }
  arrived_.notify_one();
}

void ComputeThread::limit(std::uint64_t task, std::uint64_t count) {
  const std::lock_guard lock(mutex_);
  if (current_task_ != task) return;
  limit_ = std::min(limit_.load(), count);
  arrived_.notify_one();
}

void ComputeThread::finish_early(std::uint64_t task) {
  const std::lock_guard lock(mutex_);
  if (current_task_ != task) return;
  enough_ = true;
  arrived_.notify_one();
}

// Until the device has rested for what it did, or the task is to end with what is done.
void ComputeThread::rest(const TaskSink& sink) {
  duty_.stop(now());
  std::unique_lock lock(mutex_);
  if (!sink.begun())
    arrived_.wait_for(lock, duty_.owed(), [&] { return stopping_ || enough_ || limit_ <= sink.done(); });
  duty_.start(now());
}

void ComputeThread::loop() {
  if (manners_.nice > 0) be_nice(manners_.nice);
  for (;;) {
    std::optional<engine::TaskOrder> order;
    std::function<void()> preparation;
    std::optional<Stretch> stretch;
    {
      std::unique_lock lock(mutex_);
      arrived_.wait(lock, [this] { return stopping_ || next_ || stretch_ || preparation_; });
      if (stopping_) return;
      preparation = std::move(preparation_);
      preparation_ = nullptr;
      order = std::move(next_);
      next_.reset();
      stretch = std::move(stretch_);
      stretch_.reset();
    }
    if (preparation) preparation();
    if (order) run(*order);
    if (stretch) run_stretch(std::move(*stretch));
  }
}

// One sample (or group of them), of which the result is dropped, tells whether there is room at all, and how much is
// left for more of them.
Status ComputeThread::find_micro_batch() {
  micro_batch_ = prepared_.micro_batch;
  search_.reset();
  Computation& computation = *prepared_.computation;
  const MemoryUse before = computation.memory(prepared_.reserve_bytes);
  if (before.budget == 0) return {};
  const std::uint64_t samples =
      std::min<std::uint64_t>(prepared_.fixed_micro_batch ? prepared_.micro_batch : 1, prepared_.train_samples);
  std::vector<std::uint64_t> indices(samples);
  std::iota(indices.begin(), indices.end(), 0);
  ZeroWeights weights(computation.layout());
  NoSink sink;
  const Task task{PassKind::calibrate, 0, indices, 0, static_cast<std::uint32_t>(samples), prepared_.seed};
  const Result<Outcome> outcome = computation.run(task, weights, sink, NoStop());
  const MemoryUse after = computation.memory(prepared_.reserve_bytes);
  memory_asked_ = now();
  const std::uint64_t budget = less(before.budget, prepared_.reserve_bytes);
  const bool full = !outcome && outcome.error().code == ErrorCode::memory;
  if (!outcome && !full) return outcome.error();
  if (full || after.peak > budget) {
    return Error{ErrorCode::memory,
                 "the memory of " + computation.capabilities().device + " is too small for this model: expected " +
                     mebibytes(after.peak + prepared_.reserve_bytes) + (full ? " and more" : "") + " to compute " +
                     (samples == 1 ? "one sample" : "a group of " + std::to_string(samples) + " samples") + ", found " +
                     mebibytes(before.budget),
                 "use a smaller model, close other programs, or train on a machine with more memory"};
  }
  if (!prepared_.fits_memory || prepared_.fixed_micro_batch) return {};
  search_.emplace(prepared_.micro_batch, before.used, budget);
  search_->ran({static_cast<std::uint32_t>(samples), after.peak, after.budget, 0});
  micro_batch_ = search_->size();
  return {};
}

void ComputeThread::learn(const Outcome& outcome, double took) {
  if (!search_ || outcome.count == 0) return;
  if (!search_->growing() && now() - memory_asked_ < kMemoryEvery) return;
  memory_asked_ = now();
  const MemoryUse memory = prepared_.computation->memory(prepared_.reserve_bytes);
  const auto samples = static_cast<std::uint32_t>(std::min<std::uint64_t>(micro_batch_, outcome.count));
  const double per_sample = took < seconds(kWorthTiming) ? 0 : took / static_cast<double>(outcome.count);
  search_->ran({samples, memory.peak, memory.budget, per_sample});
  micro_batch_ = search_->size();
}

bool ComputeThread::take_less() {
  if (prepared_.fixed_micro_batch || micro_batch_ <= 1) return false;
  if (search_) {
    search_->out_of_memory();
    micro_batch_ = search_->size();
  } else {
    micro_batch_ = micro_batch_ / 2;
  }
  return true;
}

void ComputeThread::run(const engine::TaskOrder& order) {
  MOTLEY_ASSERT(prepared_.computation != nullptr);
  std::vector<std::uint64_t> indices(order.count);
  if (order.kind == PassKind::train) {
    data::SampleOrder(prepared_.seed, order.epoch, prepared_.train_samples)
        .fill(order.pass_first + order.first, indices);
  } else {
    for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = order.first + i;
  }
  TaskSink sink(events_, order.number, order.weights.size(), pool_);
  const TaskStop stop(*this, sink);
  TaskWeights weights(order.weights);
  duty_.start(now());
  const Task task{order.kind, order.version, indices, order.first, micro_batch_, prepared_.seed};
  const Result<Outcome> outcome = compute(task, weights, sink, stop, [&] { sink.restart(); });
  duty_.stop(now());
  const double charge = duty_.take_charge();
  if (!outcome) {
    events_.failed(order.number, outcome.error());
    return;
  }
  events_.finished(order.number, *outcome, charge);
  if (order.kind != PassKind::evaluate) learn(*outcome, charge);
}

Result<Outcome> ComputeThread::compute(const Task& task, Weights& weights, Sink& sink, const Stop& stop,
                                       const std::function<void()>& restart) {
  for (Task smaller = task;;) {
    Result<Outcome> outcome = prepared_.computation->run(smaller, weights, sink, stop);
    if (outcome) return outcome;
    restart();
    if (outcome.error().code != ErrorCode::memory || !take_less()) return outcome;
    smaller.micro_batch = micro_batch_;
  }
}

}  // namespace motley::runtime

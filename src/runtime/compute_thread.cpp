#include "runtime/compute_thread.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/assert.h"
#include "data/order.h"
#include "runtime/mailbox.h"

namespace motley::runtime {
namespace {

class TaskWeights final : public Weights {
 public:
  explicit TaskWeights(const std::vector<SharedBytes>& chunks) : chunks_(chunks) {}
  std::span<const float> get(ChunkId chunk) override { return chunks_.at(chunk).floats(); }

 private:
  const std::vector<SharedBytes>& chunks_;
};

}  // namespace

// Passes results on, once each: after an out-of-memory retry the range and the chunks that went out already stand.
class ComputeThread::TaskSink final : public Sink {
 public:
  TaskSink(const ComputeEvents& events, std::uint64_t task, std::size_t chunks, BufferPool& pool)
      : events_(events), task_(task), sent_(chunks), pool_(pool) {}
  void progress(std::uint64_t done) noexcept override { events_.progress(task_, done); }
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
  /// The samples in the range; REQUIRES begun().
  [[nodiscard]] std::uint64_t frozen() const noexcept { return frozen_; }

 private:
  const ComputeEvents& events_;
  std::uint64_t task_;
  std::vector<std::atomic<bool>> sent_;
  BufferPool& pool_;
  std::atomic<std::uint64_t> frozen_{0};
};

// Once the range is frozen it can only be abandoned: what a retry sends must be of the same samples.
class ComputeThread::TaskStop final : public Stop {
 public:
  TaskStop(const std::atomic<std::uint64_t>& limit, const TaskSink& sink) : limit_(limit), sink_(sink) {}
  [[nodiscard]] std::uint64_t limit() const noexcept override {
    const std::uint64_t limit = limit_.load(std::memory_order_relaxed);
    return limit > 0 && sink_.begun() ? sink_.frozen() : limit;
  }

 private:
  const std::atomic<std::uint64_t>& limit_;
  const TaskSink& sink_;
};

ComputeThread::ComputeThread(ComputeEvents events) : events_(std::move(events)), thread_([this] { loop(); }) {}

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
      micro_batch_ = prepared_.micro_batch;
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
    next_ = std::move(order);
  }
  arrived_.notify_one();
}

void ComputeThread::limit(std::uint64_t task, std::uint64_t count) {
  const std::lock_guard lock(mutex_);
  if (current_task_ == task) limit_ = std::min(limit_.load(), count);
}

void ComputeThread::loop() {
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
  const TaskStop stop(limit_, sink);
  TaskWeights weights(order.weights);
  const Time started = now();
  const Task task{order.kind, order.version, indices, order.first, micro_batch_, prepared_.seed};
  const Result<Outcome> outcome = compute(task, weights, sink, stop);
  if (outcome) {
    events_.finished(order.number, *outcome, seconds(now() - started));
  } else {
    events_.failed(order.number, outcome.error());
  }
}

Result<Outcome> ComputeThread::compute(const Task& task, Weights& weights, Sink& sink, const Stop& stop) {
  for (Task smaller = task;;) {
    Result<Outcome> outcome = prepared_.computation->run(smaller, weights, sink, stop);
    if (outcome) return outcome;
    if (outcome.error().code != ErrorCode::memory || prepared_.fixed_micro_batch || micro_batch_ <= 1) return outcome;
    micro_batch_ = micro_batch_ / 2;
    smaller.micro_batch = micro_batch_;
  }
}

}  // namespace motley::runtime

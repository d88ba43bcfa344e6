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
  TaskSink(const ComputeEvents& events, std::uint64_t task, std::size_t chunks, BufferPool& pool, TaskRange& range)
      : events_(events), task_(task), sent_(chunks), pool_(pool), range_(range) {}
  void progress(std::uint64_t done) noexcept override { events_.progress(task_, done); }
  void begin(std::uint64_t count, double weight, double loss_sum) noexcept override {
    if (range_.frozen()) return;
    MOTLEY_ASSERT(count > 0);
    range_.freeze(count);
    events_.begin(task_, count, weight, loss_sum);
  }
  void ready(ChunkId chunk, std::span<const float> gradient) noexcept override {
    MOTLEY_ASSERT(range_.frozen() && chunk < sent_.size());
    if (sent_[chunk].exchange(true)) return;
    MutableBytes copy = pool_.take(gradient.size_bytes());
    std::memcpy(copy.bytes().data(), gradient.data(), gradient.size_bytes());
    events_.chunk(task_, chunk, std::move(copy).seal());
  }

 private:
  const ComputeEvents& events_;
  std::uint64_t task_;
  std::vector<std::atomic<bool>> sent_;
  BufferPool& pool_;
  TaskRange& range_;
};

ComputeThread::ComputeThread(ComputeEvents events) : events_(std::move(events)), thread_([this] { loop(); }) {}

ComputeThread::~ComputeThread() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    range_.set_limit(0);
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
    range_.reset(order.limit);
    next_ = std::move(order);
  }
  arrived_.notify_one();
}

std::uint64_t ComputeThread::limit(std::uint64_t task, std::uint64_t count) {
  const std::lock_guard lock(mutex_);
  return current_task_ == task ? range_.set_limit(count) : 0;
}

void ComputeThread::loop() {
  for (;;) {
    std::optional<engine::TaskOrder> order;
    std::function<void()> preparation;
    {
      std::unique_lock lock(mutex_);
      arrived_.wait(lock, [this] { return stopping_ || next_.has_value() || preparation_; });
      if (stopping_) return;
      preparation = std::move(preparation_);
      preparation_ = nullptr;
      order = std::move(next_);
      next_.reset();
    }
    if (preparation) preparation();
    if (order) run(*order);
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
  TaskSink sink(events_, order.number, order.weights.size(), pool_, range_);
  TaskWeights weights(order.weights);
  const Time started = now();
  for (;;) {
    const Task task{order.kind, order.version, indices, order.first, micro_batch_, prepared_.seed, order.from_end};
    Result<Outcome> outcome = prepared_.computation->run(task, weights, sink, range_);
    if (outcome) {
      events_.finished(order.number, *outcome, seconds(now() - started));
      return;
    }
    if (outcome.error().code != ErrorCode::memory || prepared_.fixed_micro_batch || micro_batch_ <= 1) {
      events_.failed(order.number, outcome.error());
      return;
    }
    micro_batch_ = micro_batch_ / 2;
  }
}

}  // namespace motley::runtime

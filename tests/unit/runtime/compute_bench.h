#pragma once
// A compute thread around a scripted model, for the tests of it.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "../ps/server_device_optimizer.h"
#include "data/order.h"
#include "runtime/compute_thread.h"
#include "runtime/mailbox.h"

namespace motley::runtime {

/// What a model does beside counting; the rest goes well and is nothing.
struct Script {
  std::function<Status(const Task&)> open{};
  std::function<void(std::span<const std::span<const float>>)> load{};
  std::function<Status(const Task&)> forward{};
  std::function<Status(const Task&, Finals&)> last_backward{};
};

inline LayoutEntry entry(const char* name, std::vector<std::int64_t> shape) {
  LayoutEntry made;
  made.name = name;
  made.shape = std::move(shape);
  return made;
}

inline Layout two_chunks() {
  // One tensor above the limit of the small ones, one below: they lie in chunks of their own.
  Result<Layout> layout = Layout::make({entry("weight", {4096}), entry("bias", {4})});
  EXPECT_TRUE(layout);
  EXPECT_EQ(layout->chunks().size(), 2U);
  return *layout;
}

inline std::vector<SharedBytes> two_chunks_of_zeros() {
  const Layout layout = two_chunks();
  std::vector<SharedBytes> chunks;
  for (const Chunk& chunk : layout.chunks()) {
    const std::vector<float> zeros(chunk.elements);
    chunks.push_back(SharedBytes::copy_of(std::as_bytes(std::span(zeros))));
  }
  return chunks;
}

inline ps::Server two_chunk_server() {
  const Layout layout = two_chunks();
  ps::Snapshot start;
  start.weights = two_chunks_of_zeros();
  return *ps::Server::make(layout, {ps::OptimizerKind::sgd, {ps::GroupSpec{}}}, {}, 0, start);
}

/// Whose gradient is one, or the size of its micro-batches where that was scripted.
class Scripted final : public DeviceModel {
 public:
  Scripted(Script script, std::uint32_t group, std::function<MemoryUse()> memory, DeviceOptimizer* device_optimizer)
      : layout_(two_chunks()),
        script_(std::move(script)),
        group_(group),
        memory_(std::move(memory)),
        device_optimizer_(device_optimizer),
        gradient_(4096, 1.0F) {}
  const Layout& layout() const override { return layout_; }
  Capabilities capabilities() const override { return {"cpu", "script", 8}; }
  MemoryUse memory(std::uint64_t) override { return memory_ ? memory_() : MemoryUse{}; }
  DeviceOptimizer* device_optimizer() override { return device_optimizer_; }
  Flow flow() const override { return Flow::overlapped; }
  std::uint32_t group(PassKind) const override { return group_ > 1 ? group_ : 0; }
  Status open(const Task& task, Arriving&) override {
    task_ = &task;
    return script_.open ? script_.open(task) : Status();
  }
  Status load(ChunkId, std::span<const std::span<const float>> chunks) override {
    if (script_.load) script_.load(chunks);
    return {};
  }
  Status start() override { return {}; }
  Result<Forward> forward(const MicroBatch&) override {
    if (const Status done = script_.forward ? script_.forward(*task_) : Status(); !done) return done.error();
    return Forward::computed;
  }
  Status backward(Finals* finals) override {
    if (finals == nullptr || !script_.last_backward) return {};
    std::ranges::fill(gradient_, static_cast<float>(task_->micro_batch));
    return script_.last_backward(*task_, *finals);
  }
  Result<Sums> sums() override { return Sums{1, 1}; }
  Status finish(std::uint64_t) override { return {}; }
  std::span<const float> gradient(ChunkId chunk) const override {
    return std::span(gradient_).first(layout_.chunks()[chunk].elements);
  }

 private:
  Layout layout_;
  Script script_;
  std::uint32_t group_;
  std::function<MemoryUse()> memory_;
  DeviceOptimizer* device_optimizer_;
  std::vector<float> gradient_;
  const Task* task_ = nullptr;
};

// A compute thread around a script, and all that it reports. What the compute thread writes is read after wait().
struct Bench {
  std::vector<std::uint64_t> progress, begun;
  std::vector<std::pair<ChunkId, float>> chunks;
  std::optional<Outcome> outcome;
  std::optional<Error> error, refused;
  double compute_seconds = 0, waited_seconds = 0;
  std::function<void()> on_begin = [] {}, on_progress = [] {};
  std::vector<std::promise<void>> over = std::vector<std::promise<void>>(32);  // of each task
  std::size_t ended = 0, waited = 0;
  std::unique_ptr<ComputeThread> thread;

  explicit Bench(Script script = {}, std::uint32_t group = 1, ResourcePolicy resource_policy = {},
                 std::function<MemoryUse()> memory = {}, std::uint64_t reserve_bytes = 0, bool chosen = false,
                 DeviceOptimizer* device_optimizer = nullptr) {
    ComputeEvents events;
    events.progress = [this](std::uint64_t, std::uint64_t done) {
      progress.push_back(done);
      on_progress();
    };
    events.begin = [this](std::uint64_t, std::uint64_t count, const engine::Begun&) {
      begun.push_back(count);
      on_begin();
    };
    events.chunk = [this](std::uint64_t, ChunkId chunk, const SharedBytes& gradient) {
      chunks.emplace_back(chunk, gradient.floats().front());
    };
    events.finished = [this](std::uint64_t, Outcome result, double seconds, double for_weights) {
      outcome = result;
      compute_seconds = seconds;
      waited_seconds = for_weights;
      over.at(ended++).set_value();
    };
    events.failed = [this](std::uint64_t, Error what) {
      error = std::move(what);
      over.at(ended++).set_value();
    };
    thread = std::make_unique<ComputeThread>(std::move(events), resource_policy);
    std::promise<void> ready;
    thread->prepare(
        [&]() -> Result<Prepared> {
          return Prepared{std::make_unique<Scripted>(std::move(script), group, std::move(memory), device_optimizer),
                          100,
                          5,
                          8,
                          group,
                          chosen,
                          reserve_bytes};
        },
        [&](const Result<const Layout*>& layout) {
          if (!layout) refused = layout.error();
          ready.set_value();
        });
    ready.get_future().get();
  }
  void start(std::uint64_t first = 0, std::uint64_t count = 16,
             std::vector<SharedBytes> weights = two_chunks_of_zeros()) {
    engine::TaskOrder order;
    order.number = 1;
    order.first = first;
    order.count = order.limit = count;
    order.weights = std::move(weights);
    thread->start(std::move(order));
  }
  void wait() { over.at(waited++).get_future().get(); }
  void run() {
    start();
    wait();
  }
};

}  // namespace motley::runtime

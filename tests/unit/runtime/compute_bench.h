#pragma once
// A compute thread around a scripted computation, for the tests of it.

#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "../ps/server_residence.h"
#include "data/order.h"
#include "runtime/compute_thread.h"
#include "runtime/mailbox.h"

namespace motley::runtime {

using Script = std::function<Result<Outcome>(const Task&, Weights&, Sink&, const Stop&)>;

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

inline ps::Server two_chunk_server() {
  const Layout layout = two_chunks();
  ps::Snapshot start;
  for (const Chunk& chunk : layout.chunks()) {
    const std::vector<float> zeros(chunk.elements);
    start.weights.push_back(SharedBytes::copy_of(std::as_bytes(std::span(zeros))));
  }
  return *ps::Server::make(layout, {ps::OptimizerKind::sgd, {ps::GroupSpec{}}}, {}, 0, start);
}

class Scripted final : public Computation {
 public:
  Scripted(Script script, std::function<MemoryUse()> memory, ps::Residence* residence)
      : layout_(two_chunks()), script_(std::move(script)), memory_(std::move(memory)), residence_(residence) {}
  const Layout& layout() const override { return layout_; }
  Capabilities capabilities() const override { return {"cpu", "script", 8}; }
  MemoryUse memory(std::uint64_t) override { return memory_ ? memory_() : MemoryUse{}; }
  ps::Residence* residence() override { return residence_; }
  Result<Outcome> run(const Task& task, Weights& weights, Sink& sink, const Stop& stop) override {
    return script_(task, weights, sink, stop);
  }

 private:
  Layout layout_;
  Script script_;
  std::function<MemoryUse()> memory_;
  ps::Residence* residence_;
};

// A compute thread around a script, and all that it reports. What the compute thread writes is read after wait().
struct Bench {
  std::vector<std::uint64_t> progress, begun;
  std::vector<std::pair<ChunkId, float>> chunks;
  std::optional<Outcome> outcome;
  std::optional<Error> error, refused;
  double compute_seconds = 0, waited_seconds = 0;
  std::uint64_t made = 0;  // samples of steps without asking
  std::function<void()> on_begin = [] {}, on_progress = [] {};
  std::vector<std::promise<void>> over = std::vector<std::promise<void>>(32);  // of each task
  std::size_t ended = 0, waited = 0;
  std::unique_ptr<ComputeThread> thread;

  explicit Bench(Script script, std::uint32_t group = 1, Manners manners = {}, std::function<MemoryUse()> memory = {},
                 std::uint64_t reserve_bytes = 0, bool chosen = false, ps::Residence* residence = nullptr) {
    ComputeEvents events;
    events.progress = [this](std::uint64_t, std::uint64_t done) {
      progress.push_back(done);
      on_progress();
    };
    events.begin = [this](std::uint64_t, std::uint64_t count, double, double) {
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
    events.made_step = [this](std::uint64_t samples, double) { made += samples; };
    thread = std::make_unique<ComputeThread>(std::move(events), manners);
    std::promise<void> ready;
    thread->prepare(
        [&]() -> Result<Prepared> {
          return Prepared{std::make_unique<Scripted>(std::move(script), std::move(memory), residence),
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
  void start(std::uint64_t first = 0, std::uint64_t count = 16) {
    engine::TaskOrder order;
    order.number = 1;
    order.first = first;
    order.count = order.limit = count;
    order.weights.resize(2);
    thread->start(std::move(order));
  }
  void wait() { over.at(waited++).get_future().get(); }
};

inline void send(Sink& sink, ChunkId chunk, float value) {
  const std::vector<float> gradient(chunk == 0 ? 4096 : 64, value);
  sink.ready(chunk, gradient);
}

}  // namespace motley::runtime

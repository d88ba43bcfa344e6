#include "runtime/task_weights.h"

#include "compute_bench.h"

namespace motley::runtime {
namespace {

SharedBytes filled(std::size_t elements, float value) {
  const std::vector<float> values(elements, value);
  return SharedBytes::copy_of(std::as_bytes(std::span(values)));
}

engine::TaskOrder order_without_weights() {
  engine::TaskOrder order;
  order.number = 1;
  order.count = order.limit = 16;
  order.weights.resize(2);
  return order;
}

using Chunks = std::span<const std::span<const float>>;

TEST(TaskWeights, ATaskWaitsForWhatItNeedsAndNoLonger) {
  std::vector<float> seen;
  Bench bench({.load = [&](Chunks chunks) {
    for (const std::span<const float> chunk : chunks) seen.push_back(chunk.front());
  }});
  bench.thread->start(order_without_weights());
  bench.thread->arrived(1, 1, filled(64, 2));
  bench.thread->arrived(7, 0, filled(4096, 9));  // of another task
  bench.thread->arrived(1, 0, filled(4096, 3));
  bench.wait();
  EXPECT_EQ(seen, (std::vector<float>{3, 2}));
  EXPECT_EQ(bench.outcome->count, 16U);
}

TEST(TaskWeights, WhatIsThereIsNotReplaced) {
  std::promise<void> used, replaced;
  float seen = 0;
  Bench bench({.load = [&](Chunks chunks) {
    used.set_value();
    replaced.get_future().get();
    seen = chunks.back().front();
  }});
  engine::TaskOrder order = order_without_weights();
  order.weights = {filled(4096, 1), filled(64, 2)};
  bench.thread->start(std::move(order));
  used.get_future().get();
  bench.thread->arrived(1, 1, filled(64, 5));
  replaced.set_value();
  bench.wait();
  EXPECT_EQ(seen, 2);
  EXPECT_EQ(bench.waited_seconds, 0);
}

TEST(TaskWeights, AnAbandonedTaskWaitsNoLonger) {
  std::promise<void> starts;
  Bench bench({.open = [&](const Task&) -> Status {
                 starts.set_value();
                 return {};
               },
               .load = [](Chunks) { ADD_FAILURE() << "nothing came"; }});
  bench.thread->start(order_without_weights());
  starts.get_future().get();
  bench.thread->limit(1, 0);
  bench.wait();
  EXPECT_EQ(bench.outcome->count, 0U);
}

}  // namespace
}  // namespace motley::runtime

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

TEST(TaskWeights, ATaskWaitsForWhatItNeedsAndNoLonger) {
  std::promise<void> first_used;
  std::vector<float> seen;
  Bench bench([&](const Task&, Weights& weights, Sink& sink, const Stop&) {
    EXPECT_FALSE(weights.here(0));
    seen.push_back(weights.get(1).front());
    EXPECT_TRUE(weights.here(1));
    first_used.set_value();
    seen.push_back(weights.get(0).front());
    sink.begin(16, 1, 1);
    return Outcome{16, 1, 1, 0};
  });
  bench.thread->start(order_without_weights());
  bench.thread->arrived(1, 1, filled(64, 2));
  bench.thread->arrived(7, 0, filled(4096, 9));  // of another task
  first_used.get_future().get();
  bench.thread->arrived(1, 0, filled(4096, 3));
  bench.wait();
  EXPECT_EQ(seen, (std::vector<float>{2, 3}));
  EXPECT_EQ(bench.outcome->count, 16U);
}

TEST(TaskWeights, WhatIsThereIsNotReplaced) {
  std::promise<void> used, replaced;
  float seen = 0;
  Bench bench([&](const Task&, Weights& weights, Sink& sink, const Stop&) {
    const std::span<const float> span = weights.get(1);
    used.set_value();
    replaced.get_future().get();
    seen = span.front();
    sink.begin(16, 1, 1);
    return Outcome{16, 1, 1, 0};
  });
  engine::TaskOrder order = order_without_weights();
  order.weights[1] = filled(64, 2);
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
  Bench bench([&](const Task&, Weights& weights, Sink&, const Stop& stop) {
    starts.set_value();
    EXPECT_TRUE(weights.get(0).empty());
    EXPECT_EQ(stop.limit(), 0U);
    return Outcome{};
  });
  bench.thread->start(order_without_weights());
  starts.get_future().get();
  bench.thread->limit(1, 0);
  bench.wait();
  EXPECT_EQ(bench.outcome->count, 0U);
}

TEST(TaskWeights, AnEndingThreadWaitsNoLonger) {
  std::promise<void> starts;
  Bench bench([&](const Task&, Weights& weights, Sink&, const Stop&) {
    starts.set_value();
    EXPECT_TRUE(weights.get(0).empty());
    return Outcome{};
  });
  bench.thread->start(order_without_weights());
  starts.get_future().get();
  bench.thread->stop();
}

}  // namespace
}  // namespace motley::runtime

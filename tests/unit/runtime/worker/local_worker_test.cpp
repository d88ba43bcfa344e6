#include <gtest/gtest.h>

#include "runtime/worker/worker_host.h"

namespace motley::runtime {
namespace {

WorkerHostOptions with_share(double share) {
  WorkerHostOptions options;
  options.resource_policy.duty = share;
  return options;
}

TEST(LocalWorker, NoStepsAreDelegatedToWhoOwesItsDeviceRest) {
  WorkerHost rests(with_share(0.5), {});
  EXPECT_FALSE(rests.local_worker()->delegate({.batches = BatchPlan(1, 1), .server = nullptr}, {}));
}

TEST(LocalWorker, WhatIsOrderedAfterItsEndIsDropped) {
  std::shared_ptr<engine::LocalWorker> orders;
  {
    WorkerHost host(with_share(1), {});
    orders = host.local_worker();
  }
  const auto held = std::make_shared<int>(0);
  EXPECT_TRUE(orders->delegate(
      {.batches = BatchPlan(1, 1), .server = nullptr},
      {.step = [held](auto, const auto&) { ADD_FAILURE() << "a step after the end"; }, .ended = [held](auto) {}}));
  orders->cut(1);
  EXPECT_EQ(held.use_count(), 1) << "the order waits for somebody";
}

}  // namespace
}  // namespace motley::runtime

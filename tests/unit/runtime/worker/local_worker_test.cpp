#include <gtest/gtest.h>

#include "runtime/worker/worker_host.h"

namespace motley::runtime {
namespace {

WorkerHostOptions with_share(double share) {
  WorkerHostOptions options;
  options.manners.duty = share;
  return options;
}

TEST(LocalWorker, WhoOwesItsDeviceRestIsLentNoSteps) {
  WorkerHost rests(with_share(0.5), {});
  EXPECT_FALSE(rests.local_worker()->lend({.batches = BatchPlan(1, 1), .server = nullptr}, {}));
}

TEST(LocalWorker, WhatIsOrderedAfterItsEndIsDropped) {
  std::shared_ptr<engine::LocalWorker> orders;
  {
    WorkerHost host(with_share(1), {});
    orders = host.local_worker();
  }
  EXPECT_TRUE(orders->lend({.batches = BatchPlan(1, 1), .server = nullptr}, {}));
  orders->cut(1);
}

}  // namespace
}  // namespace motley::runtime

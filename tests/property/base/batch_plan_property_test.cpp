#include "base/batch_plan.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

namespace motley {
namespace {

// Whenever the batch changes: steps follow each other without a gap, and epochs have every position once.
RC_GTEST_PROP(BatchPlan, EveryEpochHasEachPositionOnce, ()) {
  const auto samples = *rc::gen::inRange<std::uint64_t>(1, 200);
  BatchPlan plan(samples, *rc::gen::inRange<std::uint64_t>(1, 250));
  std::uint64_t last = 0;
  for (const int gap : *rc::gen::container<std::vector<int>>(rc::gen::inRange(1, 30))) {
    last += static_cast<std::uint64_t>(gap);
    plan.change({last, *rc::gen::inRange<std::uint64_t>(1, 250)});
  }
  std::uint64_t epoch = 0;
  std::uint64_t next = 0;
  for (std::uint64_t step = 0; step < last + 50; ++step) {
    const StepRange range = plan.range(step);
    RC_ASSERT(range.epoch == epoch && range.order_first == next);
    RC_ASSERT(range.count == std::min(plan.batch(step), samples - next));
    RC_ASSERT(range.count > 0);
    if (next == 0) RC_ASSERT(plan.first_step(epoch) == step);
    next += range.count;
    if (next < samples) continue;
    next = 0;
    ++epoch;
  }
}

}  // namespace
}  // namespace motley

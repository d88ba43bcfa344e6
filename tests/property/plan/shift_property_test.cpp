// The boundary between two parts, held against trying every one.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "plan/shift.h"

namespace motley::plan {
namespace {

double between(int low, int high) { return static_cast<double>(*rc::gen::inRange(low, high + 1)); }

Part any_part() {
  Part part;
  part.time = {between(0, 200) * 1e-3, between(1, 500) * 1e-4};
  part.micro_batch = *rc::gen::inRange<std::uint64_t>(1, 33);
  part.limit = *rc::gen::inRange<std::uint64_t>(1, 400);
  part.ceiling = part.limit + *rc::gen::inRange<std::uint64_t>(0, 400);
  if (*rc::gen::arbitrary<bool>()) {
    part.first = {*rc::gen::inRange<std::uint64_t>(1, part.limit + 1), between(1, 3000) * 1e-3};
    part.newest = part.first;
    const std::uint64_t more = *rc::gen::inRange<std::uint64_t>(0, part.limit - part.first.samples + 1);
    if (more > 0) part.newest = {part.first.samples + more, part.first.at + between(1, 3000) * 1e-3};
  }
  part.age = part.newest.at + between(0, 1000) * 1e-3;
  return part;
}

RC_GTEST_PROP(ShiftProperty, IsTheBestOfAll, ()) {
  const Part late = any_part();
  const Part early = any_part();
  const auto unit = *rc::gen::inRange<std::uint64_t>(1, 33);
  const Shift shift = best_shift(late, early, unit);
  double best = std::max(remaining(late, late.limit), remaining(early, early.limit));
  RC_ASSERT(shift.before == best);
  const std::uint64_t started = late.newest.samples + late.micro_batch;
  for (std::uint64_t moved = unit; moved + started <= late.limit && early.limit + moved <= early.ceiling; moved += unit)
    best = std::min(best, std::max(remaining(late, late.limit - moved), remaining(early, early.limit + moved)));
  RC_ASSERT(shift.after <= best + 1e-9 * (1 + std::abs(best)));
  RC_ASSERT(shift.samples % unit == 0);
  RC_ASSERT(shift.samples == 0 || shift.samples + started <= late.limit);
  RC_ASSERT(early.limit + shift.samples <= early.ceiling);
  if (shift.samples == 0) RC_ASSERT(shift.after == shift.before);
}

}  // namespace
}  // namespace motley::plan

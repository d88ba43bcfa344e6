// Whatever a peer tells of its times: the models stay within what can be, and one report alone moves them little.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <vector>

#include "plan/exposed_comm.h"
#include "plan/time_model.h"

namespace motley::plan {
namespace {

double any_seconds() { return std::pow(10.0, *rc::gen::inRange(-3000, 3000) / 10.0); }

// An honest device of a second or so.
TimeModel known_model(int records) {
  TimeModel model;
  for (int i = 0; i < records; ++i) model.record(100, 1 + 0.02 * (i % 3 - 1));
  return model;
}

RC_GTEST_PROP(TimeModelProperty, StaysWithinWhatCanBe, ()) {
  TimeModel model;
  const auto records = *rc::gen::inRange(1, 60);
  for (int i = 0; i < records; ++i) {
    model.record(*rc::gen::inRange<std::uint64_t>(1, 100'000), any_seconds());
    RC_ASSERT(std::isfinite(model.affine()->fixed));
    RC_ASSERT(std::isfinite(model.affine()->per_sample));
    RC_ASSERT(model.affine()->fixed >= 0);
    RC_ASSERT(model.affine()->per_sample > 0);
    RC_ASSERT(model.deviation() >= 0.0099);
    RC_ASSERT(model.deviation() <= 0.3001);
  }
}

RC_GTEST_PROP(TimeModelProperty, OneReportMovesItLittle, ()) {
  TimeModel model = known_model(*rc::gen::inRange(20, 60));
  const double before = model.affine()->seconds(100);
  model.record(100, any_seconds());
  RC_ASSERT(std::abs(model.affine()->seconds(100) / before - 1) <= 3 * 0.3);
  RC_ASSERT(std::abs(model.affine()->seconds(100) / before - 1) <= 0.1);
}

RC_GTEST_PROP(TimeModelProperty, OfTwoReportsItBelievesNoMoreThanTheNearer, ()) {
  TimeModel model = known_model(40);
  const double first = any_seconds(), second = any_seconds();
  model.record(100, first);
  model.record(100, second);
  const double after = model.affine()->seconds(100);
  RC_ASSERT(after <= 1.5 * std::max(1.0, std::min(first, second)));
  RC_ASSERT(1.5 * after >= std::min(1.0, std::max(first, second)));
}

RC_GTEST_PROP(ExposedCommProperty, StaysWithinWhatCanBe, ()) {
  ExposedComm exposed_comm;
  const auto passes = *rc::gen::inRange(1, 60);
  for (int i = 0; i < passes; ++i) {
    exposed_comm.pass(any_seconds(), any_seconds());
    RC_ASSERT(std::isfinite(*exposed_comm.seconds()));
    RC_ASSERT(*exposed_comm.seconds() >= 0);
    RC_ASSERT(exposed_comm.believed() <= *exposed_comm.seconds());
  }
}

RC_GTEST_PROP(ExposedCommProperty, OneWaitMovesItLittle, ()) {
  ExposedComm exposed_comm;
  const auto passes = *rc::gen::inRange(20, 60);
  for (int i = 0; i < passes; ++i) exposed_comm.pass(1.1 + 0.01 * (i % 3 - 1), 1);
  const double before = *exposed_comm.seconds();
  exposed_comm.pass(1 + any_seconds(), 1);
  RC_ASSERT(std::abs(*exposed_comm.seconds() - before) <= before);
}

}  // namespace
}  // namespace motley::plan

#include "runtime/duty_cycle.h"

#include <gtest/gtest.h>

namespace motley::runtime {
namespace {

using std::chrono::milliseconds;

TEST(DutyCycle, RestsInProportionToTheWork) {
  DutyCycle duty(0.25);
  duty.start(milliseconds(1000));
  duty.stop(milliseconds(1100));
  EXPECT_NEAR(seconds(duty.owed()), 0.3, 1e-9);
  EXPECT_NEAR(duty.take_charge(), 0.4, 1e-9);
  EXPECT_EQ(duty.take_charge(), 0);
}

TEST(DutyCycle, TimeWithoutWorkPaysAndIsNotSavedUp) {
  DutyCycle duty(0.5);
  duty.start(milliseconds(0));
  duty.stop(milliseconds(100));
  duty.start(milliseconds(140));  // cut short
  duty.stop(milliseconds(150));
  EXPECT_NEAR(seconds(duty.owed()), 0.06 + 0.01, 1e-9);
  duty.start(milliseconds(9000));
  duty.stop(milliseconds(9100));
  EXPECT_NEAR(seconds(duty.owed()), 0.1, 1e-9);
  EXPECT_NEAR(duty.take_charge(), 2 * (0.1 + 0.01 + 0.1), 1e-9);
}

TEST(DutyCycle, AllOfTheTimeOwesNothing) {
  DutyCycle duty(1);
  duty.start(milliseconds(0));
  duty.stop(milliseconds(70));
  EXPECT_EQ(duty.owed(), Duration(0));
  EXPECT_NEAR(duty.take_charge(), 0.07, 1e-9);
}

}  // namespace
}  // namespace motley::runtime

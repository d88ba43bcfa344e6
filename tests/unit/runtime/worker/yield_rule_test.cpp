#include "runtime/worker/yield_rule.h"

#include <gtest/gtest.h>

namespace motley::runtime {
namespace {

using std::chrono::seconds;

constexpr YieldOptions kIdleOnly{.idle_only = true, .idle_after = seconds(60)};
constexpr YieldOptions kBattery{.battery_pauses = true};

machine::UseReading input(double idle_s) { return {.input_idle_s = idle_s}; }
machine::UseReading load(double others) { return {.others_load = others}; }
machine::UseReading battery(bool on) { return {.on_battery = on}; }

TEST(YieldRule, InputIsUseAtOnceAndForAWhile) {
  YieldRule rule(kIdleOnly);
  EXPECT_EQ(rule.decide(input(3600), seconds(0)), PauseReason::none);
  EXPECT_EQ(rule.decide(input(0.2), seconds(1)), PauseReason::in_use);
  EXPECT_EQ(rule.decide(input(59.2), seconds(60)), PauseReason::in_use);
  EXPECT_EQ(rule.decide(input(60.2), seconds(61)), PauseReason::none);
  EXPECT_EQ(rule.decide(input(0), seconds(62)), PauseReason::in_use);
}

TEST(YieldRule, WhoJustTypedTheCommandIsStillThere) {
  EXPECT_EQ(YieldRule(kIdleOnly).decide(input(1), seconds(0)), PauseReason::in_use);
}

TEST(YieldRule, LastingLoadIsUseAndAMomentOfItIsNot) {
  YieldRule rule(kIdleOnly);
  EXPECT_EQ(rule.decide(load(0.05), seconds(0)), PauseReason::none);
  EXPECT_EQ(rule.decide(load(0.5), seconds(1)), PauseReason::none);
  EXPECT_EQ(rule.decide(load(0.05), seconds(2)), PauseReason::none);
  int at = 3;
  while (rule.decide(load(0.5), seconds(at)) == PauseReason::none) ++at;
  EXPECT_LE(at, 6);
  EXPECT_EQ(rule.decide(load(0), seconds(at + 59)), PauseReason::in_use);
  EXPECT_EQ(rule.decide(load(0), seconds(at + 60)), PauseReason::none);
}

TEST(YieldRule, LoadCountsAlsoWhereTerminalsAreIdle) {
  YieldRule rule(kIdleOnly);
  EXPECT_EQ(rule.decide({.input_idle_s = 1e6, .others_load = 0.9}, seconds(0)), PauseReason::in_use);
}

TEST(YieldRule, BatteryPowerCountsOnlyWhenAskedFor) {
  YieldRule rule(kBattery);
  EXPECT_EQ(rule.decide(battery(true), seconds(0)), PauseReason::on_battery);
  EXPECT_EQ(rule.decide(battery(false), seconds(1)), PauseReason::none);
  EXPECT_EQ(rule.decide({.input_idle_s = 0.0, .others_load = 1.0}, seconds(2)), PauseReason::none);
  EXPECT_EQ(YieldRule(kIdleOnly).decide(battery(true), seconds(0)), PauseReason::none);
}

TEST(YieldRule, WhatTheSystemDoesNotTellIsNoReasonToPause) {
  YieldRule rule({.idle_only = true, .battery_pauses = true});
  EXPECT_EQ(rule.decide({}, seconds(0)), PauseReason::none);
}

}  // namespace
}  // namespace motley::runtime

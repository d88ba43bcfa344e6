#include "bench/diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley::bench {
namespace {

using testing::HasSubstr;

const Interface kGigabit{InterfaceKind::cable, 1000, false, "eth0"};
const Interface kUntold{InterfaceKind::virtual_, 0, false, "eth0"};

/// A link whose directions carry so much, alone and at once.
LinkFigures carrying(double up, double down, const Interface& near = kGigabit, const Interface& far = kGigabit) {
  LinkFigures f;
  f.near = near;
  f.far = far;
  f.idle = {0.3, 20, 0.9, 100, 0};  // one of them waited for the processor
  f.up = {up, 0, 0.3, {0.5, 2, 1, 200, 0}};
  f.down = {0, down, 0.3, {0.5, 2, 1, 200, 0}};
  f.both = {up, down, 0.4, {0.6, 3, 1, 200, 0}};
  return f;
}

void expect(const LinkFigures& figures, Verdict verdict, const std::string& part) {
  const Diagnosis found = diagnose(figures);
  EXPECT_STREQ(to_word(found.verdict), to_word(verdict)) << found.sentence;
  EXPECT_THAT(found.sentence, HasSubstr(part));
}

TEST(Diagnosis, AGoodLink) {
  expect(carrying(941, 938), Verdict::good, "the link is good: 94 % of 1 Gbit/s");
  EXPECT_NEAR(diagnose(carrying(941, 938)).of_link, 0.938, 1e-9);
  // Where the system says nothing, what was reached tells.
  expect(carrying(941, 938, kUntold, kUntold), Verdict::good, "94 % of 1 Gbit/s");
  expect(carrying(2340, 2350, kUntold, kUntold), Verdict::good, "94 % of 2.5 Gbit/s");
  Interface ten = kGigabit;
  ten.mbit_per_s = 10000;
  expect(carrying(9400, 9400, ten, ten), Verdict::good, "94 % of 10 Gbit/s");
  expect(carrying(941, 938, ten, kGigabit), Verdict::good, "94 % of 1 Gbit/s");
}

TEST(Diagnosis, APortThatRunsAtAHundred) {
  Interface slow = kGigabit;
  slow.mbit_per_s = 100;
  expect(carrying(94, 94, slow, kGigabit), Verdict::slow_port,
         "the cable or switch of this machine runs at 100 Mbit/s, not 1 Gbit/s");
  expect(carrying(94, 94, kGigabit, slow), Verdict::slow_port, "of the other machine runs at 100 Mbit/s");
  slow.half_duplex = true;
  expect(carrying(60, 60, kGigabit, slow), Verdict::half_duplex, "of the other machine runs half duplex");
}

TEST(Diagnosis, SomethingBetweenRunsAtAHundred) {
  expect(carrying(94, 94), Verdict::slow_path, "both machines have 1 Gbit/s");
  expect(carrying(94, 94, kUntold, kUntold), Verdict::slow_path,
         "the cable or switch runs at 100 Mbit/s, not 1 Gbit/s");
}

TEST(Diagnosis, WiFi) {
  const Interface wifi{InterfaceKind::wifi, 0, false, "wlan0"};
  LinkFigures f = carrying(310, 280, wifi);
  expect(f, Verdict::wifi, "Wi-Fi carries 280 Mbit/s");
  f.idle = {2, 90, 80, 100, 0};
  expect(f, Verdict::unsteady, "Wi-Fi: the round trip varies between 2.0 and 80 ms: use a cable");
  f = carrying(310, 280, kGigabit, wifi);
  expect(f, Verdict::wifi, "Wi-Fi of the other machine carries");
}

TEST(Diagnosis, ARoundTripThatVaries) {
  LinkFigures f = carrying(941, 938);
  f.idle = {1, 50, 40, 100, 0};
  expect(f, Verdict::unsteady, "varies between 1.0 and 40 ms");
  f.idle = {0.1, 4, 4, 100, 0};  // forty times, but of nothing
  expect(f, Verdict::good, "94 %");
}

TEST(Diagnosis, OneDirectionOrBothAtOnce) {
  expect(carrying(300, 938), Verdict::one_way, "sending is slower than receiving, 300 Mbit/s against 938 Mbit/s");
  expect(carrying(938, 300), Verdict::one_way, "receiving is slower");
  LinkFigures f = carrying(941, 938);
  f.both.up_mbit_s = 470;
  f.both.down_mbit_s = 465;
  expect(f, Verdict::half_duplex, "one way at a time");
  f.both.processor_cores = 1;
  expect(f, Verdict::processor, "processor");
}

TEST(Diagnosis, LessThanTheLinkHas) {
  expect(carrying(600, 610), Verdict::less, "60 % of 1 Gbit/s");
  expect(carrying(430, 430, kUntold, kUntold), Verdict::unknown, "430 Mbit/s");
}

TEST(Diagnosis, WhatWaitsUnderLoad) {
  LinkFigures f = carrying(941, 938);
  f.up.round_trips.median_ms = 180;
  expect(f, Verdict::queues, "rises from 0.3 to 180 ms");
}

TEST(Diagnosis, OneMachine) {
  const Interface loop{InterfaceKind::loopback, 0, false, "lo"};
  expect(carrying(20000, 21000, loop, loop), Verdict::loopback, "talks to itself at 20 Gbit/s");
}

TEST(Diagnosis, NothingCame) {
  const Diagnosis found = diagnose(carrying(0, 0, kUntold, kUntold));
  EXPECT_FALSE(found.sentence.empty());
  EXPECT_EQ(step_seconds(carrying(0, 0), 1e6), 0);
}

TEST(Diagnosis, CostOfAStep) { EXPECT_NEAR(step_seconds(carrying(800, 900), 100e6), 1.0, 1e-9); }

TEST(Diagnosis, Rates) {
  EXPECT_EQ(rate_text(1.234), "1.2 Mbit/s");
  EXPECT_EQ(rate_text(94.1), "94 Mbit/s");
  EXPECT_EQ(rate_text(1000), "1 Gbit/s");
  EXPECT_EQ(rate_text(2500), "2.5 Gbit/s");
}

TEST(Diagnosis, RoundTripsAreSummedUp) {
  const RoundTrips none = summarise({}, 3);
  EXPECT_EQ(none.samples, 0U);
  EXPECT_EQ(none.lost, 3U);
  const RoundTrips some = summarise({5, 1, 3}, 0);
  EXPECT_EQ(some.median_ms, 3);
  EXPECT_EQ(some.worst_ms, 5);
  std::vector<double> many(99, 1);
  many.push_back(50);
  EXPECT_EQ(summarise(many, 0).high_ms, 1);
  EXPECT_EQ(summarise(many, 0).worst_ms, 50);
}

}  // namespace
}  // namespace motley::bench

#include "transport/tcp/admission.h"

#include <gtest/gtest.h>

namespace motley::transport {
namespace {

using namespace std::chrono_literals;

TEST(Admission, ASourcePushesItselfOut) {
  Admission admission(8, 2);
  EXPECT_FALSE(admission.enter(1, "a"));
  EXPECT_FALSE(admission.enter(2, "b"));
  EXPECT_FALSE(admission.enter(3, "a"));
  EXPECT_EQ(admission.enter(4, "a"), 1U);
  EXPECT_EQ(admission.enter(5, "a"), 3U);
  EXPECT_EQ(admission.size(), 3U);
}

TEST(Admission, WhenFullTheOldestOfTheBusiestGoes) {
  Admission admission(4, 3);
  EXPECT_FALSE(admission.enter(1, "a"));
  EXPECT_FALSE(admission.enter(2, "b"));
  EXPECT_FALSE(admission.enter(3, "b"));
  EXPECT_FALSE(admission.enter(4, "c"));
  EXPECT_EQ(admission.enter(5, "d"), 2U);
  // All equally busy now: the one that came first.
  EXPECT_EQ(admission.enter(6, "e"), 1U);
  EXPECT_EQ(admission.size(), 4U);
}

TEST(Admission, WhoIsProvenMakesRoom) {
  Admission admission(1, 1);
  EXPECT_FALSE(admission.enter(1, "a"));
  admission.leave(1);
  admission.leave(1);
  admission.leave(99);
  EXPECT_FALSE(admission.enter(2, "a"));
}

TEST(HandshakeGate, GivesASecondsWorthAtOnceThenOneAnInterval) {
  HandshakeGate::Instant now{};
  HandshakeGate gate(10, now);
  EXPECT_FALSE(gate.wait(now));
  for (std::uint64_t id = 0; id < 12; ++id) gate.enter(id, false);
  for (std::uint64_t id = 0; id < 10; ++id) EXPECT_EQ(gate.next(now), id);
  EXPECT_FALSE(gate.next(now));
  ASSERT_TRUE(gate.wait(now));
  EXPECT_EQ(*gate.wait(now), 100ms);
  now += 99ms;
  EXPECT_FALSE(gate.next(now));
  now += 1ms;
  EXPECT_EQ(gate.next(now), 10U);
  EXPECT_FALSE(gate.next(now));
}

TEST(HandshakeGate, RestBringsNoMoreThanASecondsWorth) {
  HandshakeGate::Instant now{};
  HandshakeGate gate(5, now);
  now += 1h;
  for (std::uint64_t id = 0; id < 20; ++id) gate.enter(id, false);
  std::size_t count = 0;
  while (gate.next(now)) ++count;
  EXPECT_EQ(count, 5U);
}

TEST(HandshakeGate, WhoIsKnownComesBeforeAllStrangers) {
  HandshakeGate::Instant now{};
  HandshakeGate gate(5, now);
  for (std::uint64_t id = 0; id < 20; ++id) gate.enter(id, false);
  gate.enter(100, true);
  gate.enter(101, true);
  EXPECT_EQ(gate.next(now), 100U);
  EXPECT_EQ(gate.next(now), 101U);
  EXPECT_EQ(gate.next(now), 0U);
}

TEST(HandshakeGate, WhoLeavesDoesNotCost) {
  HandshakeGate::Instant now{};
  HandshakeGate gate(1, now);
  for (std::uint64_t id = 0; id < 1000; ++id) {
    gate.enter(id, false);
    gate.leave(id);
  }
  gate.enter(7, false);
  EXPECT_EQ(gate.next(now), 7U);
  EXPECT_FALSE(gate.wait(now));
}

}  // namespace
}  // namespace motley::transport

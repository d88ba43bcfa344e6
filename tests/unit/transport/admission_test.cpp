#include "transport/tcp/admission.h"

#include <gtest/gtest.h>

namespace motley::transport {
namespace {

using namespace std::chrono_literals;

TcpLimits limits_of(std::size_t all, std::size_t per_address) {
  TcpLimits limits;
  limits.unproven_max = all;
  limits.unproven_per_address_max = per_address;
  return limits;
}

TEST(Admission, ASourcePushesItselfOut) {
  Admission admission(limits_of(8, 2));
  EXPECT_FALSE(admission.enter(1, "a"));
  EXPECT_FALSE(admission.enter(2, "b"));
  EXPECT_FALSE(admission.enter(3, "a"));
  EXPECT_EQ(admission.enter(4, "a"), 1U);
  EXPECT_EQ(admission.enter(5, "a"), 3U);
  EXPECT_EQ(admission.size(), 3U);
}

TEST(Admission, WhenFullTheOldestOfTheBusiestGoes) {
  Admission admission(limits_of(4, 3));
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
  Admission admission(limits_of(1, 1));
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
  for (std::uint64_t id = 0; id < 12; ++id) gate.enter(id);
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
  for (std::uint64_t id = 0; id < 20; ++id) gate.enter(id);
  std::size_t count = 0;
  while (gate.next(now)) ++count;
  EXPECT_EQ(count, 5U);
}

TEST(HandshakeGate, WhoLeavesDoesNotCost) {
  HandshakeGate::Instant now{};
  HandshakeGate gate(1, now);
  for (std::uint64_t id = 0; id < 1000; ++id) {
    gate.enter(id);
    gate.leave(id);
  }
  gate.enter(7);
  EXPECT_EQ(gate.next(now), 7U);
  EXPECT_FALSE(gate.wait(now));
}

}  // namespace
}  // namespace motley::transport

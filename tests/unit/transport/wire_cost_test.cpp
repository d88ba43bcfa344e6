#include "transport/wire_cost.h"

#include <gtest/gtest.h>

namespace motley::transport {
namespace {

// A clock that goes on by a second each time it is asked: what is between two looks takes one.
double seconds = 0;
double ticking() { return ++seconds; }
double standing() { return 7; }

TEST(WireCost, BothWaysAreTimed) {
  for (const bool encrypted : {false, true}) {
    const WireCost cost = measure_wire_cost(encrypted, &ticking);
    EXPECT_GT(cost.sent, 0) << encrypted;
    EXPECT_GT(cost.received, 0) << encrypted;
  }
}

TEST(WireCost, IsProcessorTimeAlone) {
  const WireCost cost = measure_wire_cost(true, &standing);
  EXPECT_EQ(cost.sent, 0);
  EXPECT_EQ(cost.received, 0);
}

}  // namespace
}  // namespace motley::transport

#include "plan/codec_cost.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace motley::plan {
namespace {

TEST(CodecCost, AnIdleProcessorKeepsComputingFromNothing) {
  EXPECT_EQ(computing_held_up(8, 1), 0);
  EXPECT_EQ(computing_held_up(2, 1), 0);
  EXPECT_EQ(computing_held_up(16, 0), 0) << "an accelerator computes";
  EXPECT_DOUBLE_EQ(computing_held_up(1, 1), 1);
  EXPECT_DOUBLE_EQ(computing_held_up(4, 4), 0.25);
  EXPECT_DOUBLE_EQ(computing_held_up(0.5, 1), 2) << "of half a processor a second is two";
  EXPECT_DOUBLE_EQ(computing_held_up(1.5, 1), 0.5);
}

TEST(CodecCost, WhatAWorkerTellsIsHeard) {
  const EndCost cost{
      .sent = 1e-9, .received = 2e-9, .encode = {0, 3e-9, 4e-9, 5e-9}, .decode_delta = {0, 6e-9, 7e-9, 8e-9}};
  EXPECT_EQ(heard(told(cost)), cost);
}

TEST(CodecCost, WhatNoMachineTakesIsNotBelieved) {
  EXPECT_FALSE(heard({}));
  EXPECT_FALSE(heard(std::vector<double>(7, 1e-9)));
  for (const double wrong :
       {-1e-9, 1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    std::vector<double> numbers(8, 1e-9);
    numbers[3] = wrong;
    EXPECT_FALSE(heard(numbers)) << wrong;
  }
}

// A worker that does a quarter of the step and a head that does the rest; 100 bytes in fp32.
TEST(CodecCost, EachEndCountsByItsPart) {
  const PassEnd worker{{.sent = 4, .received = 8, .encode = {0, 0, 1, 0}, .decode_delta = {0, 0, 2, 0}}, 0.25};
  const PassEnd head{{.sent = 16, .received = 32, .decode_add = {1, 1, 1, 1}, .encode_delta = {0, 0, 4, 0}}, 0.75};
  const ByCodec bytes{100, 50, 25, 12.5};
  const ByCodec up = held_up(worker, head, bytes, {.gradients = true});
  EXPECT_DOUBLE_EQ(up[0], 0.25 * 400 + 0.75 * (3200 + 100));
  EXPECT_DOUBLE_EQ(up[2], 0.25 * (100 + 100) + 0.75 * (800 + 100));
  const ByCodec down = held_up(worker, head, bytes, {.weights = true});
  EXPECT_DOUBLE_EQ(down[0], 0.25 * 800 + 0.75 * 1600);
  EXPECT_DOUBLE_EQ(down[2], 0.25 * (200 + 200) + 0.75 * (400 + 400));
  const ByCodec both = held_up(worker, head, bytes, {.gradients = true, .weights = true});
  EXPECT_DOUBLE_EQ(both[2], up[2] + down[2]);
  EXPECT_EQ(held_up(worker, head, bytes, {}), ByCodec{});
}

}  // namespace
}  // namespace motley::plan

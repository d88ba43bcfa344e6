#include "plan/micro_batch.h"

#include <gtest/gtest.h>

namespace motley::plan {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kFixed = 10 * kMiB;
constexpr std::uint64_t kPlenty = 1000 * kMiB;

// A device whose samples take a mebibyte each, beside the weights.
std::uint64_t peak(std::uint32_t samples) { return kFixed + samples * kMiB; }

MicroBatch::Run run_of(std::uint32_t samples, std::uint64_t budget, double seconds_per_sample = 0) {
  return {samples, peak(samples), budget, seconds_per_sample};
}

// Runs whatever is next until the search is over; the sizes.
std::vector<std::uint32_t> sizes_of(MicroBatch& search, std::uint64_t budget) {
  std::vector<std::uint32_t> sizes;
  while (search.growing()) {
    sizes.push_back(search.size());
    search.ran(run_of(search.size(), budget));
  }
  return sizes;
}

TEST(MicroBatch, PlentyOfMemoryLeavesOutTheSizesBetween) {
  MicroBatch search(256, kFixed, kPlenty);
  EXPECT_EQ(search.size(), 1U);
  search.ran(run_of(1, kPlenty));
  EXPECT_EQ(search.size(), 256U);
  EXPECT_FALSE(search.growing());
}

TEST(MicroBatch, DoublesWhileTheModelSaysThatItFits) {
  const std::uint64_t budget = kFixed + 100 * kMiB;
  MicroBatch search(256, kFixed, budget);
  EXPECT_EQ(sizes_of(search, budget), (std::vector<std::uint32_t>{1, 2, 4, 8, 16, 32, 64}));
  EXPECT_EQ(search.size(), 64U);  // 128 would take more than there is
}

TEST(MicroBatch, EndsAtWhatTheDeviceIsFastWith) {
  const std::uint64_t budget = kFixed + 8 * kMiB;
  MicroBatch search(6, kFixed, budget);
  EXPECT_EQ(sizes_of(search, budget), (std::vector<std::uint32_t>{1, 2, 4}));
  EXPECT_EQ(search.size(), 6U);
}

TEST(MicroBatch, WhatASampleTakesOnceIsToldFromWhatEachTakes) {
  // 60 MiB of scratch space, however many samples: one run alone looks like 61 MiB a sample.
  const std::uint64_t budget = kFixed + 130 * kMiB;
  MicroBatch search(32, kFixed, budget);
  const auto peak_of = [](std::uint32_t samples) { return kFixed + 60 * kMiB + samples * kMiB; };
  search.ran({1, peak_of(1), budget, 0});
  EXPECT_EQ(search.size(), 1U);  // twice as much, and a margin, might not fit
  const std::uint64_t more = kFixed + 160 * kMiB;
  MicroBatch roomier(32, kFixed, more);
  roomier.ran({1, peak_of(1), more, 0});
  EXPECT_EQ(roomier.size(), 2U);
  roomier.ran({2, peak_of(2), more, 0});
  EXPECT_EQ(roomier.size(), 32U);
}

TEST(MicroBatch, OutOfMemoryIsTheCeiling) {
  MicroBatch search(256, kFixed, kPlenty);
  search.ran(run_of(1, kPlenty));
  EXPECT_TRUE(search.out_of_memory());
  EXPECT_EQ(search.size(), 128U);
  EXPECT_TRUE(search.out_of_memory());
  for (int i = 0; i < 5; ++i) search.ran(run_of(search.size(), kPlenty));
  EXPECT_EQ(search.size(), 64U);
  while (search.size() > 1) EXPECT_TRUE(search.out_of_memory());
  EXPECT_FALSE(search.out_of_memory());
}

TEST(MicroBatch, GrowsNoFurtherThanTheFirstBudget) {
  // What is free later may still be wanted by the rest of the process.
  const std::uint64_t first = kFixed + 20 * kMiB;
  MicroBatch search(256, kFixed, first);
  while (search.growing()) search.ran(run_of(search.size(), kPlenty));
  EXPECT_EQ(search.size(), 16U);
}

TEST(MicroBatch, StepsBackWhenOthersTakeTheMemory) {
  MicroBatch search(256, kFixed, kPlenty);
  search.ran(run_of(1, kPlenty));
  search.ran(run_of(256, kFixed + 70 * kMiB));
  EXPECT_EQ(search.size(), 64U);
  search.ran(run_of(64, kPlenty));
  EXPECT_EQ(search.size(), 64U);
}

TEST(MicroBatch, ASpeedCliffTakesItBack) {
  const std::uint64_t budget = kFixed + 100 * kMiB;
  MicroBatch search(256, kFixed, budget);
  while (search.size() < 32) search.ran(run_of(search.size(), budget, 1e-3));
  search.ran(run_of(32, budget, 2e-3));
  EXPECT_EQ(search.size(), 32U);  // a hiccup, perhaps
  search.ran(run_of(32, budget, 2e-3));
  EXPECT_EQ(search.size(), 16U);
  search.ran(run_of(16, budget, 1e-3));
  EXPECT_EQ(search.size(), 16U);
  EXPECT_FALSE(search.growing());
}

TEST(MicroBatch, OneSlowRunIsAHiccup) {
  const std::uint64_t budget = kFixed + 100 * kMiB;
  MicroBatch search(256, kFixed, budget);
  while (search.size() < 32) search.ran(run_of(search.size(), budget, 1e-3));
  search.ran(run_of(32, budget, 2e-3));
  search.ran(run_of(32, budget, 1e-3));
  EXPECT_EQ(search.size(), 64U);
}

TEST(MicroBatch, AShorterRunSaysNothingOfALargerSize) {
  const std::uint64_t budget = kFixed + 100 * kMiB;
  MicroBatch search(256, kFixed, budget);
  while (search.size() < 16) search.ran(run_of(search.size(), budget));
  search.ran(run_of(4, budget));
  EXPECT_EQ(search.size(), 16U);
  EXPECT_TRUE(search.growing());
}

}  // namespace
}  // namespace motley::plan

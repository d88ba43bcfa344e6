#include "compute/memory_growth.h"

#include <gtest/gtest.h>

namespace motley::compute {
namespace {

using Act = MemoryGrowth::Act;
constexpr std::uint64_t kGigabyte = std::uint64_t{1} << 30;

TEST(MemoryGrowth, WhatStaysIsLeftAlone) {
  MemoryGrowth growth;
  for (std::uint64_t i = 0; i < 100'000; ++i) ASSERT_EQ(growth.decide((3 + i % 2) * kGigabyte), Act::nothing);
}

TEST(MemoryGrowth, CachesAreEmptiedBeforeANewProcessGoesOn) {
  MemoryGrowth growth;
  std::uint64_t bytes = kGigabyte;
  for (std::uint32_t i = 0; i < MemoryGrowth::kFirst; ++i) ASSERT_EQ(growth.decide(bytes), Act::nothing);
  int emptied = 0;
  for (;; bytes += kGigabyte / 4) {  // nothing helps
    const Act act = growth.decide(bytes);
    if (act == Act::new_process) break;
    emptied += act == Act::empty_caches ? 1 : 0;
    ASSERT_LT(bytes, 5 * kGigabyte);
  }
  EXPECT_EQ(emptied, 3);
  MemoryGrowth helped;
  for (std::uint32_t i = 0; i < MemoryGrowth::kFirst; ++i) ASSERT_EQ(helped.decide(kGigabyte), Act::nothing);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(helped.decide(4 * kGigabyte), Act::empty_caches);
    EXPECT_EQ(helped.decide(kGigabyte), Act::nothing);
  }
}

}  // namespace
}  // namespace motley::compute

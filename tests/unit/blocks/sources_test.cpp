#include "blocks/sources.h"

#include <gtest/gtest.h>

#include <set>

namespace motley::blocks::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kBlock = 1 << 20;

Hash block(std::uint8_t number) {
  Hash hash{};
  hash[0] = number;
  return hash;
}

TEST(Sources, WhoIsFasterIsAskedForMore) {
  Sources sources;
  sources.add(0);
  sources.add(1);
  Time now{};
  std::uint8_t next = 0;
  std::map<Sources::Id, int> asked;
  const auto ask = [&] {
    const Sources::Id id = sources.choose(kBlock, false, now);
    sources.ask(id, {block(next), kBlock, false}, now);
    ++next;
    return id;
  };
  std::map<Sources::Id, std::vector<std::uint8_t>> open;
  for (int i = 0; i < 16; ++i) {
    const std::uint8_t number = next;
    open[ask()].push_back(number);
  }
  EXPECT_EQ(open[0].size(), 8U) << "nothing is known of either";
  for (int tick = 1; tick <= 160; ++tick) {  // 1 brings a block every 10 ms, 0 one in ten
    now += 10ms;
    for (const Sources::Id id : {0U, 1U}) {
      if (open[id].empty() || (id == 0 && tick % 10 != 0)) continue;
      ASSERT_TRUE(sources.take(id, block(open[id].front()), now));
      open[id].erase(open[id].begin());
      const std::uint8_t number = next;
      const Sources::Id again = ask();
      open[again].push_back(number);
      if (tick > 80) ++asked[again];
    }
  }
  EXPECT_GE(asked[1], 6 * asked[0]);
  EXPECT_GT(asked[0], 0) << "it helps, too";
  EXPECT_EQ(sources.open(), 16U);
}

TEST(Sources, WhatIsWaitedForGoesBeforeTheRest) {
  Sources sources;
  sources.add(0);
  sources.add(1);
  sources.ask(0, {block(1), kBlock, false}, {});
  sources.ask(0, {block(2), kBlock, false}, {});
  sources.ask(1, {block(3), kBlock, true}, {});
  EXPECT_EQ(sources.choose(kBlock, false, {}), 1U);
  EXPECT_EQ(sources.choose(kBlock, true, {}), 0U);
  sources.hurry(block(1));
  sources.hurry(block(2));
  EXPECT_EQ(sources.choose(kBlock, true, {}), 1U);
}

TEST(Sources, WhoIsDroppedLeavesWhatItWasAskedFor) {
  Sources sources;
  sources.add(0);
  sources.add(7);
  sources.ask(7, {block(1), kBlock, false}, {});
  sources.ask(7, {block(2), 5, true}, {});
  EXPECT_EQ(sources.asked(block(2)), 7U);
  const std::vector<Sources::Open> left = sources.drop(7);
  ASSERT_EQ(left.size(), 2U);
  EXPECT_EQ(left[1].bytes, 5U);
  EXPECT_TRUE(left[1].waited_for);
  EXPECT_FALSE(sources.asked(block(2)));
  EXPECT_FALSE(sources.take(7, block(2), {})) << "it comes too late";
  EXPECT_TRUE(sources.drop(7).empty());
}

TEST(Sources, ContentThatNobodyAskedThatMachineForDoesNotCount) {
  Sources sources;
  sources.add(0);
  sources.add(1);
  sources.ask(0, {block(1), kBlock, false}, {});
  EXPECT_FALSE(sources.take(1, block(1), 1s));
  EXPECT_TRUE(sources.take(0, block(1), 1s));
  EXPECT_FALSE(sources.take(0, block(1), 1s));
}

TEST(Sources, WhoBringsNothingIsSeen) {
  Sources sources;
  sources.add(0);
  sources.add(1);
  sources.ask(1, {block(1), kBlock, false}, 5s);
  EXPECT_TRUE(sources.stalled(5s + kStalledAfter - 1ns).empty());
  EXPECT_EQ(sources.stalled(5s + kStalledAfter), std::vector<Sources::Id>{1});
  sources.ask(0, {block(2), kBlock, false}, 6s);
  EXPECT_TRUE(sources.take(1, block(1), 7s));
  EXPECT_EQ(sources.stalled(60s), std::vector<Sources::Id>{0});
}

}  // namespace
}  // namespace motley::blocks::test

#include "runtime/head/file_sources.h"

#include <gtest/gtest.h>

namespace motley::runtime::test {
namespace {

FileSources::Key key_numbered(std::uint8_t number) {
  FileSources::Key key{};
  key[0] = number;
  return key;
}

const blocks::Hash kSetA{1}, kSetB{2};

TEST(FileSources, WhoFetchesMeetsWhoHasItWhoeverSaysSoFirst) {
  FileSources sources;
  EXPECT_TRUE(sources.keeps(1, key_numbered(1), kSetA, true).empty());
  EXPECT_TRUE(sources.keeps(2, key_numbered(2), kSetB, false).empty()) << "another set";
  const auto first = sources.keeps(3, key_numbered(3), kSetA, false);
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].server, 1U);
  EXPECT_EQ(first[0].guest, 3U);
  EXPECT_TRUE(sources.meeting(1, first[0].id));
  EXPECT_FALSE(sources.meeting(3, first[0].id)) << "not who is let in";
  EXPECT_TRUE(sources.keeps(3, key_numbered(3), kSetA, false).empty()) << "they have met";
  const auto second = sources.keeps(4, key_numbered(4), kSetA, true);
  ASSERT_EQ(second.size(), 1U);
  EXPECT_EQ(second[0].server, 4U);
  EXPECT_NE(second[0].secret, first[0].secret);
  EXPECT_TRUE(sources.serves(4));
  EXPECT_FALSE(sources.serves(3));
}

TEST(FileSources, ProcessesOfOneMachineDoNotMeetUnlessKeysSayNothing) {
  FileSources sources;
  sources.keeps(1, key_numbered(1), kSetA, true);
  EXPECT_TRUE(sources.keeps(2, key_numbered(1), kSetA, false).empty());
  FileSources plain;
  plain.keeps(1, {}, kSetA, true);
  EXPECT_EQ(plain.keeps(2, {}, kSetA, false).size(), 1U);
}

TEST(FileSources, NobodyIsGivenTooMany) {
  FileSources sources;
  for (FileSources::LinkId id = 1; id <= 6; ++id)
    sources.keeps(id, key_numbered(static_cast<std::uint8_t>(id)), kSetA, true);
  EXPECT_EQ(sources.keeps(7, key_numbered(7), kSetA, false).size(), FileSources::kServersMax);
  FileSources one;
  one.keeps(1, key_numbered(1), kSetA, true);
  std::size_t met = 0;
  for (FileSources::LinkId id = 2; id <= 9; ++id)
    met += one.keeps(id, key_numbered(static_cast<std::uint8_t>(id)), kSetA, false).size();
  EXPECT_EQ(met, FileSources::kGuestsMax);
}

TEST(FileSources, WhoGoesEndsItsMeetings) {
  FileSources sources;
  sources.keeps(1, key_numbered(1), kSetA, true);
  const auto met = sources.keeps(2, key_numbered(2), kSetA, false);
  const auto over = sources.close(2);
  ASSERT_EQ(over.size(), 1U);
  EXPECT_EQ(over[0].id, met[0].id);
  EXPECT_FALSE(sources.meeting(1, met[0].id));
  EXPECT_TRUE(sources.close(2).empty());
  EXPECT_EQ(sources.keeps(3, key_numbered(3), kSetA, false).size(), 1U);
  EXPECT_EQ(sources.close(1).size(), 1U);
}

}  // namespace
}  // namespace motley::runtime::test

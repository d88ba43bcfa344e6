#include "transport/tcp/knock.h"

#include <gtest/gtest.h>

#include <vector>

namespace motley::transport {
namespace {

constexpr Digest kKey{1, 2, 3};

std::vector<std::byte> bytes_of(const Knock& knock) {
  const auto bytes = std::as_bytes(std::span(knock));
  return {bytes.begin(), bytes.end()};
}

TEST(Knock, IsGoodOnce) {
  Knocks knocks(kKey);
  const std::vector<std::byte> knock = bytes_of(make_knock(kKey));
  const Knocks::First first = knocks.judge(knock);
  EXPECT_EQ(first.who, Knocks::Who::known);
  EXPECT_EQ(first.bytes, kKnockBytes);
  EXPECT_EQ(knocks.judge(knock).who, Knocks::Who::stranger);
  EXPECT_EQ(knocks.judge(bytes_of(make_knock(kKey))).who, Knocks::Who::known);
}

TEST(Knock, IsUnclearUntilItIsWhole) {
  Knocks knocks(kKey);
  std::vector<std::byte> bytes = bytes_of(make_knock(kKey));
  for (std::size_t count = 1; count < kKnockBytes; ++count)
    EXPECT_EQ(knocks.judge(std::span(bytes).first(count)).who, Knocks::Who::unclear) << count;
  bytes.resize(bytes.size() + 100);  // what follows is not looked at
  EXPECT_EQ(knocks.judge(bytes).who, Knocks::Who::known);
}

TEST(Knock, OfAnotherKeyOrChangedIsAStrangers) {
  Knocks knocks(kKey);
  EXPECT_EQ(knocks.judge(bytes_of(make_knock({9}))).who, Knocks::Who::stranger);
  EXPECT_EQ(Knocks(std::nullopt).judge(bytes_of(make_knock(kKey))).who, Knocks::Who::stranger);
  const std::vector<std::byte> good = bytes_of(make_knock(kKey));
  for (std::size_t at = 0; at < kKnockBytes; ++at) {
    std::vector<std::byte> changed = good;
    changed[at] ^= std::byte{1};
    const Knocks::First first = knocks.judge(changed);
    EXPECT_EQ(first.who, Knocks::Who::stranger) << at;
    EXPECT_EQ(first.bytes, at < 8 ? 0U : kKnockBytes) << at;  // without the magic it is no knock
  }
  EXPECT_EQ(knocks.judge(good).who, Knocks::Who::known);
}

TEST(Knock, NoTlsRecordLooksLikeOne) {
  Knocks knocks(kKey);
  const std::vector<std::byte> hello{std::byte{0x16}};
  const Knocks::First first = knocks.judge(hello);
  EXPECT_EQ(first.who, Knocks::Who::stranger);
  EXPECT_EQ(first.bytes, 0U);
}

// Old knocks are forgotten, so that a long run does not grow.
TEST(Knock, ManyAreForgotten) {
  Knocks knocks(kKey);
  const std::vector<std::byte> oldest = bytes_of(make_knock(kKey));
  EXPECT_EQ(knocks.judge(oldest).who, Knocks::Who::known);
  for (int i = 0; i < 4096; ++i) EXPECT_EQ(knocks.judge(bytes_of(make_knock(kKey))).who, Knocks::Who::known);
  EXPECT_EQ(knocks.judge(oldest).who, Knocks::Who::known);
}

}  // namespace
}  // namespace motley::transport

#include "base/philox.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace motley {
namespace {

using Counter = std::array<std::uint32_t, 4>;
using Key = std::array<std::uint32_t, 2>;

// The known-answer vectors that Random123 publishes for philox4x32-10.
TEST(Philox, KnownAnswersOfRandom123) {
  EXPECT_EQ(philox4x32(Counter{0, 0, 0, 0}, Key{0, 0}), (Counter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32(Counter{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, Key{0xffffffff, 0xffffffff}),
            (Counter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32(Counter{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, Key{0xa4093822, 0x299f31d0}),
            (Counter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, StreamIsCounterMode) {
  constexpr std::uint64_t kSeed = 0x1122334455667788;
  constexpr std::uint64_t kStream = 0x99AABBCCDDEEFF00;
  Philox random(kSeed, kStream);
  for (std::uint32_t block = 0; block < 3; ++block) {
    const Counter expected = philox4x32({block, 0, 0xDDEEFF00, 0x99AABBCC}, {0x55667788, 0x11223344});
    for (const std::uint32_t word : expected) EXPECT_EQ(random.next_u32(), word);
  }
}

TEST(Philox, WideNumbersTakeTheLowWordFirst) {
  Philox words(5);
  Philox wide(5);
  const std::uint64_t low = words.next_u32();
  const std::uint64_t high = words.next_u32();
  EXPECT_EQ(wide.next_u64(), low | (high << 32));
}

TEST(Philox, SeedsAndStreamsDiffer) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    for (std::uint64_t stream = 0; stream < 10; ++stream) seen.insert(Philox(seed, stream).next_u64());
  }
  EXPECT_EQ(seen.size(), 100U);
}

TEST(Philox, BelowReachesEveryNumberEvenly) {
  Philox random(1);
  std::array<int, 7> counts{};
  for (int i = 0; i < 70000; ++i) ++counts.at(random.below(7));
  for (const int count : counts) EXPECT_NEAR(count, 10000, 500);  // five standard deviations
  EXPECT_EQ(random.below(1), 0U);
}

TEST(Philox, BelowHugeBounds) {
  Philox random(2);
  constexpr std::uint64_t kBound = (std::uint64_t{1} << 63) + 1;  // almost half of all numbers are thrown away
  for (int i = 0; i < 1000; ++i) EXPECT_LT(random.below(kBound), kBound);
}

TEST(Philox, UniformStaysBelowOne) {
  Philox random(3);
  double sum = 0;
  for (int i = 0; i < 100000; ++i) {
    const double value = random.uniform();
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    sum += value;
  }
  EXPECT_NEAR(sum / 100000, 0.5, 0.005);
}

TEST(Philox, GaussianHasMeanZeroAndVarianceOne) {
  Philox random(4);
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < 100000; ++i) {
    const double value = random.gaussian();
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / 100000, 0, 0.016);
  EXPECT_NEAR(squares / 100000, 1, 0.025);
}

}  // namespace
}  // namespace motley

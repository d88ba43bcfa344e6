#include "blocks/missing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "wire/limits.h"

namespace motley::blocks {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Hash hash_with(std::uint8_t byte) {
  Hash hash{};
  hash.fill(byte);
  return hash;
}

/// One file of whole blocks whose hashes have these bytes.
Manifest blocks_of(const std::vector<std::uint8_t>& bytes) {
  Listed file{.name = "x", .size = bytes.size() * wire::kBlockBytesMax};
  for (const std::uint8_t byte : bytes) file.hashes.insert(file.hashes.end(), sizeof(Hash), byte);
  return {.name = "data", .files = {file}};
}

std::vector<int> asked(Missing& missing, std::size_t window) {
  std::vector<int> hashes;
  while (const auto next = missing.next(window)) {
    hashes.push_back(next->hash[0]);
    missing.take(next->hash);
  }
  return hashes;
}

TEST(MissingBlocks, ComeInTheirOrder) {
  Missing missing(blocks_of({1, 2, 3, 4}), {false, true, false, false});
  EXPECT_EQ(missing.bytes(), 3 * wire::kBlockBytesMax);
  EXPECT_THAT(asked(missing, 2), ElementsAre(1, 3, 4));
  EXPECT_TRUE(missing.empty());
}

TEST(MissingBlocks, OnlySoManyAreOpen) {
  Missing missing(blocks_of({1, 2, 3}), std::vector<bool>(3));
  EXPECT_TRUE(missing.next(2) && missing.next(2));
  EXPECT_FALSE(missing.next(2));
  EXPECT_THAT(missing.take(hash_with(1)), ElementsAre(0));
  EXPECT_TRUE(missing.next(2));
}

TEST(MissingBlocks, OneContentBelongsToSeveralBlocksAndComesOnce) {
  Missing missing(blocks_of({7, 8, 7}), std::vector<bool>(3));
  EXPECT_THAT(missing.take(hash_with(7)), ElementsAre(0, 2));
  EXPECT_THAT(missing.take(hash_with(7)), IsEmpty());
  EXPECT_THAT(asked(missing, 8), ElementsAre(8));
}

}  // namespace
}  // namespace motley::blocks

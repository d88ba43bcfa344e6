#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "blocks/asking.h"
#include "blocks/catalogue.h"
#include "blocks/serving.h"
#include "wire/limits.h"

namespace motley::blocks {
namespace {

// As good as SHA-256 here: equal content has equal hashes, and what the tests change is in the sums.
Hash sums(std::span<const std::byte> bytes) {
  Hash hash{};
  for (std::size_t i = 0; i < bytes.size(); ++i)
    hash[i % 32] = static_cast<std::uint8_t>(hash[i % 32] * 31 + std::to_integer<unsigned>(bytes[i]) + 1);
  return hash;
}

std::vector<std::byte> content(std::size_t bytes, unsigned seed) {
  std::vector<std::byte> made(bytes);
  for (std::size_t i = 0; i < bytes; ++i) made[i] = static_cast<std::byte>(i * 7 + seed);
  return made;
}

wire::Frame piece(const Hash& hash, std::span<const std::byte> all, std::size_t offset, std::size_t count) {
  wire::FrameHeader header;
  header.type = wire::FrameType::block;
  header.subject = prefix_of(hash);
  header.offset = static_cast<std::uint32_t>(offset);
  header.total = static_cast<std::uint32_t>(all.size());
  return wire::seal(header, SharedBytes::copy_of(all.subspan(offset, count)));
}

class AskingTest : public testing::Test {
 protected:
  Result<Asking::Added> send(std::span<const std::byte> all, std::size_t offset, std::size_t count) {
    return asking_.add(piece(hash_, all, offset, count));
  }
  const std::vector<std::byte> content_ = content(1000, 1);
  const Hash hash_ = sums(content_);
  const wire::Want want_{.offer = 0, .sha256 = {hash_.begin(), hash_.end()}};
  Asking asking_{&sums};
};

TEST_F(AskingTest, PutsPiecesTogether) {
  EXPECT_EQ(asking_.want(hash_, content_.size()), want_);
  EXPECT_FALSE(asking_.want(hash_, content_.size()));
  EXPECT_FALSE(send(content_, 0, 600)->whole);
  const Result<Asking::Added> last = send(content_, 600, 400);
  ASSERT_TRUE(last.ok());
  EXPECT_EQ(last->whole, hash_);
  EXPECT_EQ(last->content, content_);
  EXPECT_EQ(asking_.open(), 0U);
}

TEST_F(AskingTest, AFlippedBitIsAskedForAgainAndTheThirdTimeAnError) {
  asking_.want(hash_, content_.size());
  std::vector<std::byte> other = content_;
  other[999] ^= std::byte{4};
  for (int attempt = 1; attempt < kAttemptsMax; ++attempt) {
    const Result<Asking::Added> added = send(other, 0, 1000);
    ASSERT_TRUE(added.ok());
    EXPECT_FALSE(added->whole);
    EXPECT_EQ(added->again, want_);
  }
  const Result<Asking::Added> third = send(other, 0, 1000);
  ASSERT_FALSE(third.ok());
  EXPECT_EQ(third.error().code, ErrorCode::mismatch);
}

TEST_F(AskingTest, AfterAFlippedBitTheRightContentCounts) {
  asking_.want(hash_, content_.size());
  std::vector<std::byte> other = content_;
  other[0] ^= std::byte{1};
  EXPECT_TRUE(send(other, 0, 1000)->again);
  EXPECT_EQ(send(content_, 0, 1000)->whole, hash_);
}

TEST_F(AskingTest, WhatBeganBeginsAnewOnTheNextConnection) {
  asking_.want(hash_, content_.size());
  EXPECT_TRUE(send(content_, 0, 600).ok());
  EXPECT_EQ(asking_.restart(), std::vector{want_});
  EXPECT_TRUE(send(content_, 0, 600).ok());
  EXPECT_EQ(send(content_, 600, 400)->whole, hash_);
}

TEST_F(AskingTest, NothingElseIsTaken) {
  EXPECT_FALSE(send(content_, 0, 1000).ok());  // nobody asked
  asking_.want(hash_, content_.size());
  wire::Frame of_weights = piece(hash_, content_, 0, 1000);
  of_weights.header.type = wire::FrameType::weights;
  EXPECT_FALSE(asking_.add(of_weights).ok());
  EXPECT_FALSE(send(content_, 1, 999).ok());           // its beginning is missing
  EXPECT_FALSE(send(content(1001, 1), 0, 1001).ok());  // longer than what was asked for
  EXPECT_FALSE(send(content(999, 1), 0, 999).ok());    // shorter
  EXPECT_FALSE(send(content_, 0, 0).ok());             // no end of these
  EXPECT_TRUE(send(content_, 0, 600).ok());
  EXPECT_FALSE(send(content_, 0, 600).ok());  // twice
  EXPECT_EQ(send(content_, 600, 400)->whole, hash_);
}

TEST_F(AskingTest, HasRoomForSoMany) {
  for (unsigned i = 0; i < wire::kWantsMax; ++i) {
    ASSERT_TRUE(asking_.has_room());
    asking_.want(sums(content(8, i)), 8);
  }
  EXPECT_FALSE(asking_.has_room());
}

TEST(Serving, AnswersInOrderAndBoundsWhatIsOpen) {
  Serving serving;
  EXPECT_FALSE(serving.next());
  EXPECT_TRUE(serving.ask({.offer = 1, .sha256 = {}}).ok());
  EXPECT_TRUE(serving.ask({.offer = 0, .sha256 = std::vector<std::uint8_t>(32, 7)}).ok());
  EXPECT_EQ(serving.next()->offer, 1U);
  EXPECT_EQ(serving.next()->hash[31], 7);
  for (std::size_t i = 0; i < wire::kWantsMax; ++i) EXPECT_TRUE(serving.ask({.offer = 1, .sha256 = {}}).ok());
  const Status more = serving.ask({.offer = 1, .sha256 = {}});
  ASSERT_FALSE(more.ok());
  EXPECT_EQ(more.error().code, ErrorCode::protocol);
  EXPECT_EQ(serving.open(), wire::kWantsMax);
}

TEST(Serving, TakesAnOfferOrAHash) {
  Serving serving;
  EXPECT_FALSE(serving.ask({.offer = 0, .sha256 = {}}).ok());
  EXPECT_FALSE(serving.ask({.offer = 0, .sha256 = std::vector<std::uint8_t>(31)}).ok());
  EXPECT_FALSE(serving.ask({.offer = 2, .sha256 = std::vector<std::uint8_t>(32)}).ok());
  EXPECT_EQ(serving.open(), 0U);
}

std::vector<std::uint8_t> hashes(std::initializer_list<std::uint8_t> first_bytes) {
  std::vector<std::uint8_t> made;
  for (const std::uint8_t first : first_bytes) {
    made.push_back(first);
    made.resize(made.size() + 31);
  }
  return made;
}

Hash hash_of(std::uint8_t first) { return {first}; }

TEST(Catalogue, FindsBlocksAndManifestsAndNothingElse) {
  Catalogue catalogue;
  const std::vector<std::byte> manifest(70);
  const std::uint64_t kSize = 2 * wire::kBlockBytesMax + 5;
  ASSERT_TRUE(catalogue
                  .add({SharedBytes::copy_of(manifest),
                        hash_of(9),
                        {{"empty", 0, {}}, {"long", kSize, hashes({3, 1, 2})}, {"short", 4, hashes({5})}}})
                  .ok());
  ASSERT_TRUE(catalogue.add({SharedBytes::copy_of(manifest), hash_of(8), {{"other", 4, hashes({5})}}}).ok());
  const std::optional<Place> last = catalogue.find(hash_of(2));
  ASSERT_TRUE(last);
  EXPECT_EQ(catalogue.file(*last).path, "long");
  EXPECT_EQ(last->offset, 2 * wire::kBlockBytesMax);
  EXPECT_EQ(last->bytes, 5U);
  EXPECT_EQ(catalogue.file(*catalogue.find(hash_of(5))).path, "short");
  const std::optional<Place> named = catalogue.find(hash_of(8));
  ASSERT_TRUE(named);
  EXPECT_FALSE(named->file);
  EXPECT_EQ(catalogue.manifest(*named).size(), manifest.size());
  EXPECT_FALSE(catalogue.find(hash_of(0)));
  EXPECT_FALSE(catalogue.find(hash_of(10)));
  EXPECT_EQ(catalogue.offer(1)->hash, hash_of(9));
  EXPECT_EQ(catalogue.offer(0), nullptr);
  EXPECT_EQ(catalogue.offer(3), nullptr);
}

TEST(Catalogue, RefusesWhatDoesNotFit) {
  Catalogue catalogue;
  const SharedBytes manifest = SharedBytes::copy_of(std::vector<std::byte>(1));
  EXPECT_FALSE(catalogue.add({SharedBytes(), hash_of(1), {}}).ok());
  EXPECT_FALSE(catalogue.add({manifest, hash_of(1), {{"a", 1, {}}}}).ok());
  EXPECT_FALSE(catalogue.add({manifest, hash_of(1), {{"a", 1, hashes({1, 2})}}}).ok());
  EXPECT_FALSE(catalogue.add({manifest, hash_of(1), {{"a", 1, std::vector<std::uint8_t>(33)}}}).ok());
  const SharedBytes large = SharedBytes::copy_of(std::vector<std::byte>(wire::kManifestBytesMax + 1));
  EXPECT_FALSE(catalogue.add({large, hash_of(1), {}}).ok());
  EXPECT_EQ(catalogue.size(), 0U);
}

}  // namespace
}  // namespace motley::blocks

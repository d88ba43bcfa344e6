#include "store/release_files.h"

#include <gtest/gtest.h>

#include <fstream>

#include "temporary.h"

namespace motley::store {
namespace {

namespace fs = std::filesystem;

class ReleaseFiles : public testing::Test {
 protected:
  static LossState named(std::uint64_t number, std::string_view words) {
    return {number, SharedBytes::copy_of(std::as_bytes(std::span(words)))};
  }
  [[nodiscard]] std::uint64_t number_at(std::uint64_t version) const {
    const Result<LossState> state = read_state(dir, version);
    return state ? state->number : 999;
  }
  const test::TemporaryDirectory temporary;
  const fs::path& dir = temporary.path();
};

TEST_F(ReleaseFiles, TheNewestMarkIsKept) {
  EXPECT_EQ(read_released(dir), 0U);
  ASSERT_TRUE(write_released(dir, 12).ok());
  ASSERT_TRUE(write_released(dir, 18446744073709551615U).ok());
  EXPECT_EQ(read_released(dir), 18446744073709551615U);
}

TEST_F(ReleaseFiles, AStateHoldsFromItsVersionOn) {
  EXPECT_EQ(number_at(7), 0U);
  ASSERT_TRUE(write_state(dir, 0, named(1, "one")).ok());
  ASSERT_TRUE(write_state(dir, 10, named(2, "")).ok());
  EXPECT_EQ(number_at(0), 1U);
  EXPECT_EQ(number_at(9), 1U);
  EXPECT_EQ(number_at(10), 2U);
  EXPECT_EQ(read_state(dir, 9)->bytes.size(), 3U);
  EXPECT_TRUE(read_state(dir, 11)->bytes.empty());
}

TEST_F(ReleaseFiles, WhatNoCheckpointNeedsGoes) {
  for (const std::uint64_t version : {0U, 10U, 20U, 30U})
    ASSERT_TRUE(write_state(dir, version, named(version + 1, "x")).ok());
  prune_states(dir, 25);
  EXPECT_EQ(number_at(19), 0U);
  EXPECT_EQ(number_at(25), 21U);
  EXPECT_EQ(number_at(30), 31U);
}

TEST_F(ReleaseFiles, WhatIsLostIsForgotten) {
  ASSERT_TRUE(write_state(dir, 10, named(2, "two")).ok());
  ASSERT_TRUE(write_state(dir, 20, named(3, "three")).ok());
  ASSERT_TRUE(write_released(dir, 20).ok());
  roll_back_releases(dir, 15);
  EXPECT_EQ(number_at(40), 2U);
  EXPECT_EQ(read_released(dir), 15U);
}

TEST_F(ReleaseFiles, DamageIsFoundAtEveryByte) {
  ASSERT_TRUE(write_state(dir, 3, named(2, "some words")).ok());
  std::string whole;
  {
    std::ifstream in(dir / "loss-state-3", std::ios::binary);
    whole.assign(std::istreambuf_iterator<char>(in), {});
  }
  const auto reads = [&](const std::string& text) {
    std::ofstream(dir / "loss-state-3", std::ios::binary | std::ios::trunc) << text;
    return read_state(dir, 3).ok();
  };
  for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(reads(whole.substr(0, size))) << size;
  std::string flipped = whole;
  flipped.back() = static_cast<char>(flipped.back() ^ 1);
  EXPECT_FALSE(reads(flipped));
  EXPECT_FALSE(reads(whole + "x"));
  EXPECT_TRUE(reads(whole));
}

}  // namespace
}  // namespace motley::store

// A set of files as a machine keeps it, filled by whoever lists it.

#include "runtime/worker/kept_set.h"

#include <gtest/gtest.h>

#include "../../store/temporary.h"
#include "transport/crypto.h"
#include "wire/limits.h"

namespace motley::runtime {
namespace {

using store::test::TemporaryDirectory;

blocks::Listed file_of(const std::string& name, std::size_t size, const blocks::Hash& hash) {
  blocks::Listed file{.name = name, .size = size};
  file.hashes.assign(hash.begin(), hash.end());
  return file;
}

TEST(KeptSet, OneHashForBlocksOfTwoSizesFillsNoDisk) {
  const TemporaryDirectory home;
  const std::vector<std::byte> content(wire::kBlockBytesMax, std::byte{7});
  const blocks::Hash hash = transport::sha256(content);
  const blocks::Manifest list{.name = "data",
                              .files = {file_of("a", wire::kBlockBytesMax, hash), file_of("b", 1, hash)}};
  Result<KeptSet> set = KeptSet::open(home.path(), list, blocks::to_text(list));
  ASSERT_TRUE(set) << set.error().message;
  ASSERT_TRUE(*set->take());
  const std::atomic<bool> stops = false;
  ASSERT_TRUE(set->begin(home.path(), stops));
  EXPECT_TRUE(set->put(0, content));
  const Status refused = set->put(1, content);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::protocol);
  EXPECT_EQ(std::filesystem::file_size(set->path() / "b"), 1U);
}

TEST(KeptSet, WhatIsThereIsLookedThroughUntilItStops) {
  const TemporaryDirectory home;
  const std::vector<std::byte> content(5, std::byte{7});
  const blocks::Manifest list{.name = "data", .files = {file_of("a", 5, transport::sha256(content))}};
  Result<KeptSet> set = KeptSet::open(home.path(), list, blocks::to_text(list));
  ASSERT_TRUE(set) << set.error().message;
  ASSERT_TRUE(*set->take());
  const std::atomic<bool> stops = true;
  const Result<std::vector<bool>> begun = set->begin(home.path(), stops);
  ASSERT_FALSE(begun);
  EXPECT_EQ(begun.error().code, ErrorCode::interrupted);
}

// What holes would be large enough to be dropped for: more than the limit of what is kept.
TEST(KeptSet, HolesTakeNoRoom) {
  const TemporaryDirectory home;
  const std::filesystem::path old = home / "sets/old";
  std::filesystem::create_directories(old / "tree");
  store::test::spill(old / "tree/mostly-missing", "a");
  std::filesystem::resize_file(old / "tree/mostly-missing", 30'000'000'000);
  const std::vector<std::byte> content(5, std::byte{7});
  const blocks::Manifest list{.name = "data", .files = {file_of("a", 5, transport::sha256(content))}};
  Result<KeptSet> set = KeptSet::open(home.path(), list, blocks::to_text(list));
  ASSERT_TRUE(set) << set.error().message;
  ASSERT_TRUE(*set->take());
  const std::atomic<bool> stops = false;
  ASSERT_TRUE(set->begin(home.path(), stops));
  EXPECT_TRUE(std::filesystem::exists(old));
}

}  // namespace
}  // namespace motley::runtime

// A join token's file: made for one user alone, and believed only where nobody else can have written it.

#include "store/secret_file.h"

#include "owner.h"
#include "temporary.h"

namespace motley::store::test {
namespace {

TEST(SecretFile, OnlyItsOwnerMayReadIt) {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "token";
  ASSERT_TRUE(write_secret_file(path, "secret\n"));
  expect_for_its_owner(path);
  EXPECT_EQ(read_secret_file(path, 100).value(), "secret\n");
}

TEST(SecretFile, ReplacesOneOfItsOwn) {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "token";
  ASSERT_TRUE(write_secret_file(path, "the first, which is longer"));
  ASSERT_TRUE(write_secret_file(path, "second"));
  EXPECT_EQ(read_secret_file(path, 100).value(), "second");
}

TEST(SecretFile, OneThatOthersMayWriteIsNotBelieved) {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "token";
  ASSERT_TRUE(write_secret_file(path, "secret"));
  let_others_write(path);
  const auto read = read_secret_file(path, 100);
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.error().message.find("can be written by others"), std::string::npos) << read.error().message;
}

TEST(SecretFile, LinesAreAddedByWhoeverOwnsIt) {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "lines";
  ASSERT_TRUE(append_secret_line(path, "one", 10));
  ASSERT_TRUE(append_secret_line(path, "two", 10));
  EXPECT_EQ(*read_secret_file(path, 10), "one\ntwo\n");
  EXPECT_EQ(append_secret_line(path, "three", 10).error().code, ErrorCode::input);
  expect_for_its_owner(path);
  EXPECT_FALSE(append_secret_line(directory.path(), "x", 100));
}

TEST(SecretFile, WhatIsNoFileOrTooLongIsRefused) {
  const TemporaryDirectory directory;
  EXPECT_FALSE(read_secret_file(directory.path(), 100).ok());
  EXPECT_FALSE(read_secret_file(directory.path() / "nothing", 100).ok());
  const auto path = directory.path() / "token";
  ASSERT_TRUE(write_secret_file(path, "secret"));
  EXPECT_FALSE(read_secret_file(path, 5).ok());
}

}  // namespace
}  // namespace motley::store::test

// A join token's file: made for one user alone, and believed only where nobody else can have written it.

#include "store/secret_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include "temporary.h"

namespace motley::store::test {
namespace {

constexpr uid_t kSomebodyElse = 65534;

mode_t mode_of(const std::filesystem::path& path) {
  struct stat found{};
  EXPECT_EQ(::lstat(path.c_str(), &found), 0);
  return found.st_mode & 07777U;
}

TEST(SecretFile, OnlyItsOwnerMayReadIt) {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "token";
  const mode_t before = ::umask(0);
  ASSERT_TRUE(write_secret_file(path, "secret\n"));
  ::umask(before);
  EXPECT_EQ(mode_of(path), 0600U);
  EXPECT_EQ(read_secret_file(path, 100).value(), "secret\n");
}

TEST(SecretFile, ReplacesOneOfItsOwn) {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "token";
  ASSERT_TRUE(write_secret_file(path, "the first, which is longer"));
  ASSERT_TRUE(write_secret_file(path, "second"));
  EXPECT_EQ(read_secret_file(path, 100).value(), "second");
}

TEST(SecretFile, IsNotWrittenThroughALink) {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "token";
  const auto elsewhere = directory.path() / "elsewhere";
  std::filesystem::create_symlink(elsewhere, path);
  EXPECT_FALSE(write_secret_file(path, "secret"));
  // Not through one that waits under the temporary name either.
  std::filesystem::remove(path);
  std::filesystem::create_symlink(elsewhere, directory.path() / (".token.tmp-" + std::to_string(::getpid())));
  ASSERT_TRUE(write_secret_file(path, "secret"));
  EXPECT_FALSE(std::filesystem::exists(elsewhere));
}

TEST(SecretFile, OneThatOthersMayWriteIsNotBelieved) {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "token";
  ASSERT_TRUE(write_secret_file(path, "secret"));
  for (const mode_t mode : {0620U, 0602U}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    const auto read = read_secret_file(path, 100);
    ASSERT_FALSE(read.ok());
    EXPECT_NE(read.error().message.find("can be written by others"), std::string::npos) << read.error().message;
  }
}

TEST(SecretFile, SomebodyElsesIsNeitherReadNorReplaced) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to give a file away";
  const TemporaryDirectory directory;
  const auto path = directory.path() / "token";
  ASSERT_TRUE(write_secret_file(path, "secret"));
  ASSERT_EQ(::chown(path.c_str(), kSomebodyElse, kSomebodyElse), 0);
  EXPECT_FALSE(read_secret_file(path, 100).ok());
  const Status replaced = write_secret_file(path, "another");
  ASSERT_FALSE(replaced);
  EXPECT_NE(replaced.error().message.find("belongs to somebody else"), std::string::npos) << replaced.error().message;
}

TEST(SecretFile, LinesAreAddedByWhoeverOwnsIt) {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "lines";
  ASSERT_TRUE(append_secret_line(path, "one", 10));
  ASSERT_TRUE(append_secret_line(path, "two", 10));
  EXPECT_EQ(*read_secret_file(path, 10), "one\ntwo\n");
  EXPECT_EQ(append_secret_line(path, "three", 10).error().code, ErrorCode::input);
  struct stat found{};
  ASSERT_EQ(::stat(path.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777U, 0600U);
  ASSERT_EQ(::symlink(path.c_str(), (directory.path() / "link").c_str()), 0);
  EXPECT_FALSE(append_secret_line(directory.path() / "link", "x", 100));
  EXPECT_FALSE(append_secret_line(directory.path(), "x", 100));
}

TEST(SecretFile, WhatIsNoFileOrTooLongIsRefused) {
  const TemporaryDirectory directory;
  EXPECT_FALSE(read_secret_file(directory.path(), 100).ok());
  EXPECT_FALSE(read_secret_file(directory.path() / "nothing", 100).ok());
  const auto path = directory.path() / "token";
  ASSERT_TRUE(write_secret_file(path, "secret"));
  EXPECT_FALSE(read_secret_file(path, 5).ok());
  ASSERT_EQ(::mkfifo((directory.path() / "pipe").c_str(), 0600), 0);
  EXPECT_FALSE(read_secret_file(directory.path() / "pipe", 100).ok());
}

}  // namespace
}  // namespace motley::store::test

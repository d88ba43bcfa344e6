// What of a secret file's tests needs links, pipes and the bits of a mode.

#include <sys/stat.h>
#include <unistd.h>

#include "owner.h"
#include "store/file.h"
#include "store/secret_file.h"
#include "temporary.h"

namespace motley::store::test {
namespace {

constexpr uid_t kSomebodyElse = 65534;

TEST(SecretFilePosix, OnlyItsOwnerMayReadItWhateverTheMask) {
  const TemporaryDirectory directory;
  const mode_t before = ::umask(0);
  ASSERT_TRUE(write_secret_file(directory.path() / "token", "secret\n"));
  ASSERT_TRUE(append_secret_line(directory.path() / "lines", "one", 10));
  ::umask(before);
  expect_for_its_owner(directory.path() / "token");
  expect_for_its_owner(directory.path() / "lines");
}

TEST(SecretFilePosix, IsNotWrittenThroughALink) {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "token";
  const auto elsewhere = directory.path() / "elsewhere";
  std::filesystem::create_symlink(elsewhere, path);
  EXPECT_FALSE(write_secret_file(path, "secret"));
  EXPECT_FALSE(append_secret_line(path, "x", 100));
  // Not through one that waits under the temporary name either.
  std::filesystem::remove(path);
  std::filesystem::create_symlink(elsewhere, directory.path() / (".token.tmp-" + std::to_string(this_process())));
  ASSERT_TRUE(write_secret_file(path, "secret"));
  EXPECT_FALSE(std::filesystem::exists(elsewhere));
}

TEST(SecretFilePosix, OneThatItsGroupMayWriteIsNotBelieved) {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "token";
  ASSERT_TRUE(write_secret_file(path, "secret"));
  ASSERT_EQ(::chmod(path.c_str(), 0620), 0);
  EXPECT_FALSE(read_secret_file(path, 100).ok());
}

TEST(SecretFilePosix, SomebodyElsesIsNeitherReadNorReplaced) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to give a file away";
  const TemporaryDirectory directory;
  const auto path = directory.path() / "token";
  ASSERT_TRUE(write_secret_file(path, "secret"));
  ASSERT_EQ(::chown(path.c_str(), kSomebodyElse, kSomebodyElse), 0);
  EXPECT_FALSE(read_secret_file(path, 100).ok());
  EXPECT_FALSE(append_secret_line(path, "x", 100));
  const Status replaced = write_secret_file(path, "another");
  ASSERT_FALSE(replaced);
  EXPECT_NE(replaced.error().message.find("belongs to somebody else"), std::string::npos) << replaced.error().message;
}

TEST(SecretFilePosix, APipeIsNoFile) {
  const TemporaryDirectory directory;
  ASSERT_EQ(::mkfifo((directory.path() / "pipe").c_str(), 0600), 0);
  EXPECT_FALSE(read_secret_file(directory.path() / "pipe", 100).ok());
}

}  // namespace
}  // namespace motley::store::test

#include "store/run_dir.h"

#include "owner.h"
#include "store/file.h"
#include "temporary.h"

namespace motley::store {
namespace {

using test::message;
using test::TemporaryDirectory;

TEST(RunDir, IsCreatedWithItsParents) {
  const TemporaryDirectory directory;
  auto run = RunDir::open(directory / "a/b/c", false);
  ASSERT_TRUE(run) << message(run);
  EXPECT_EQ(run->path(), directory / "a/b/c");
  EXPECT_FALSE(run->has_run());
  ASSERT_TRUE(run->write_file("run.toml", "x = 1\n"));
  EXPECT_TRUE(run->has_run());
  EXPECT_EQ(*run->read_file("run.toml", 100), "x = 1\n");
}

TEST(RunDir, ServesOneAtATimeAndNamesTheOther) {
  const TemporaryDirectory directory;
  {
    auto first = RunDir::open(directory.path(), false);
    ASSERT_TRUE(first) << message(first);
    const auto second = RunDir::open(directory.path(), false);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::busy);
    EXPECT_NE(second.error().message.find("process " + std::to_string(this_process())), std::string::npos);
    EXPECT_FALSE(second.error().hint.empty());
  }
  EXPECT_TRUE(RunDir::open(directory.path(), false));
}

TEST(RunDir, ResumingNeedsARun) {
  const TemporaryDirectory directory;
  const auto missing = RunDir::open(directory / "nothing", true);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::input);
  EXPECT_NE(missing.error().message.find("run.toml"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(directory / "nothing"));
  test::spill(directory / "run.toml", "");
  EXPECT_TRUE(RunDir::open(directory.path(), true));
}

TEST(RunDir, AFileInItsPlaceIsNamed) {
  const TemporaryDirectory directory;
  test::spill(directory / "file", "");
  const auto run = RunDir::open(directory / "file", false);
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().code, ErrorCode::input);
  EXPECT_NE(run.error().message.find("not a directory"), std::string::npos);
}

TEST(RunDir, SecretsAreForTheOwnerAlone) {
  const TemporaryDirectory directory;
  auto run = RunDir::open(directory.path(), false);
  ASSERT_TRUE(run->write_file("key.pem", "old"));
  ASSERT_TRUE(run->write_file("key.pem", "secret", true));
  test::expect_for_its_owner(directory / "key.pem");
}

TEST(RunDir, FilesAreReadUpToALimit) {
  const TemporaryDirectory directory;
  auto run = RunDir::open(directory.path(), false);
  ASSERT_TRUE(run->write_file("f", "12345"));
  EXPECT_TRUE(run->read_file("f", 5));
  EXPECT_EQ(run->read_file("f", 4).error().code, ErrorCode::input);
  EXPECT_EQ(run->read_file("g", 4).error().code, ErrorCode::io);
}

TEST(RunDir, IncarnationsRiseOverRestarts) {
  const TemporaryDirectory directory;
  for (std::uint32_t expected = 1; expected <= 3; ++expected) {
    auto run = RunDir::open(directory.path(), false);
    EXPECT_EQ(*run->next_incarnation(), expected);
  }
  auto run = RunDir::open(directory.path(), false);
  for (const char* wrong : {"", "x\n", "3", "-1\n", "4294967295\n", "4294967296\n"}) {
    test::spill(directory / "incarnation", wrong);
    EXPECT_EQ(run->next_incarnation().error().code, ErrorCode::input) << wrong;
  }
}

TEST(RunDir, LeftoversOfACrashAreCleared) {
  const TemporaryDirectory directory;
  test::spill(directory / ".run.toml.tmp-1", "half");
  ASSERT_TRUE(RunDir::open(directory.path(), false));
  EXPECT_FALSE(std::filesystem::exists(directory / ".run.toml.tmp-1"));
}

}  // namespace
}  // namespace motley::store

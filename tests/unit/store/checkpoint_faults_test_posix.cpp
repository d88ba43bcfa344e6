// Full disks and processes that are killed, as POSIX lets a test make them.

#if defined(__linux__)
#include <sys/mount.h>
#endif
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "checkpoint_content.h"

namespace motley::store {
namespace {

using test::latest;
using test::make_content;
using test::message;
using test::TemporaryDirectory;

// Runs `body` in a process of its own; its exit status, or minus the signal that ended it.
template <class Body>
int in_child(Body body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void limit_files(std::uint64_t bytes, bool ignore_signal) {
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  const rlimit limit{bytes, bytes};
  ::setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, ignore_signal ? SIG_IGN : SIG_DFL);
}

TEST(CheckpointFaults, AFullDiskIsSaidAndLeavesTheOldOne) {
  const TemporaryDirectory run;
  ASSERT_TRUE(write_checkpoint(run.path(), make_content(5)));
  const CheckpointContent content = make_content(6);
  for (const std::uint64_t bytes : {0, 10, 1000, 100'000, 130'000}) {
    const int result = in_child([&] {
      limit_files(bytes, true);
      const auto path = write_checkpoint(run.path(), content);
      const bool said = !path && path.error().code == ErrorCode::disk_full &&
                        path.error().message.find(run.path().string()) != std::string::npos &&
                        path.error().message.find(" bytes") != std::string::npos && !path.error().hint.empty();
      return said ? 0 : 1;
    });
    EXPECT_EQ(result, 0) << "limit of " << bytes;
    EXPECT_FALSE(std::filesystem::exists(run.path() / "checkpoints" / "step-000000006"));
    EXPECT_EQ(latest(run.path())->step, 5U);
  }
}

// The system ends a process that writes past the limit: a kill in the middle of a file, at a place of our choice.
TEST(CheckpointFaults, AKillWhileWritingLeavesTheOldOne) {
  const TemporaryDirectory run;
  ASSERT_TRUE(write_checkpoint(run.path(), make_content(5)));
  const CheckpointContent content = make_content(6);
  for (const std::uint64_t bytes : {1, 100, 1000, 50'000, 131'072}) {
    const int result = in_child([&] {
      limit_files(bytes, false);
      return write_checkpoint(run.path(), content) ? 1 : 2;
    });
    EXPECT_EQ(result, -SIGXFSZ) << "limit of " << bytes;
    EXPECT_EQ(latest(run.path())->step, 5U);
  }
  ASSERT_TRUE(write_checkpoint(run.path(), content));
  EXPECT_EQ(latest(run.path())->step, 6U);
}

#if defined(__linux__)
TEST(CheckpointFaults, OnAFileSystemWithoutSpace) {
  const TemporaryDirectory run;
  if (::mount("none", run.path().c_str(), "tmpfs", 0, "size=600k") != 0) GTEST_SKIP() << "mounting a tmpfs needs root";
  const auto first = write_checkpoint(run.path(), make_content(5));
  const auto second = first ? write_checkpoint(run.path(), make_content(6)) : first;
  const auto back = latest(run.path());
  ::umount(run.path().c_str());
  ASSERT_TRUE(first) << message(first);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::disk_full) << message(second);
  ASSERT_TRUE(back) << message(back);
  EXPECT_EQ(back->step, 5U);
}
#endif

}  // namespace
}  // namespace motley::store

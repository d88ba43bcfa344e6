#include "machine/keep_awake.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

namespace motley::machine {
namespace {

#ifdef __APPLE__
constexpr const char* kTool = "caffeinate";
#else
constexpr const char* kTool = "systemd-inhibit";
#endif

/// A tool that tells its words to a named pipe, and holds that open as long as it runs.
class KeepAwakeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "motley-awake-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    told_ = directory_ / "told";
    ASSERT_EQ(mkfifo(told_.c_str(), 0600), 0);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  void make_tool(const std::string& then) {
    const std::filesystem::path tool = directory_ / kTool;
    std::ofstream(tool) << "#!/bin/sh\nexec 3>'" + told_.string() + "'\necho \"$@\" >&3\n" + then + "\n";
    std::filesystem::permissions(tool, std::filesystem::perms::owner_all);
  }
  [[nodiscard]] std::string path() const { return "/nowhere:" + directory_.string(); }

  std::filesystem::path directory_, told_;
};

/// The end of a named pipe that is read. Streams of libc++ wait until a buffer is full; this does not.
class Told {
 public:
  void open(const std::filesystem::path& path) { end_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC); }
  Told() = default;
  explicit Told(const std::filesystem::path& path) { open(path); }
  ~Told() { close(end_); }
  Told(const Told&) = delete;
  Told& operator=(const Told&) = delete;
  /// False: nobody has it open any more.
  bool line(std::string& words) {
    words.clear();
    for (char c = 0; read(end_, &c, 1) == 1; words += c)
      if (c == '\n') return true;
    return false;
  }

 private:
  int end_ = -1;
};

/// Nothing of this process is left to wait for.
bool is_childless() { return waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD; }

TEST_F(KeepAwakeTest, RunsTheToolUntilItIsReleased) {
  make_tool("exec cat >&2");
  Told told;
  std::string words;
  {
    const KeepAwake awake("somebody trains", path());
    told.open(told_);
    told.line(words);
  }
#ifdef __APPLE__
  EXPECT_EQ(words, "-i -w " + std::to_string(getpid()));
#else
  EXPECT_EQ(words, "--what=idle:sleep --who=motley --why=somebody trains --mode=block cat");
#endif
  EXPECT_FALSE(told.line(words)) << "the tool has ended, and with it what it had open";
  EXPECT_TRUE(is_childless());
}

TEST_F(KeepAwakeTest, AToolThatDoesNotWatchItsInputIsEndedToo) {
  make_tool("trap '' TERM INT HUP\nexec tail -f /dev/null");
  Told told;
  std::string words;
  {
    const KeepAwake awake("somebody trains", path());
    told.open(told_);
    told.line(words);
  }
  EXPECT_FALSE(told.line(words));
  EXPECT_TRUE(is_childless());
}

TEST_F(KeepAwakeTest, TheToolEndsWithAProcessThatIsKilled) {
  make_tool("exec cat >&2");
  const pid_t trainer = fork();
  if (trainer == 0) {
    const KeepAwake awake("somebody trains", path());
    for (;;) pause();
  }
  Told told(told_);
  std::string words;
  ASSERT_TRUE(told.line(words));
  kill(trainer, SIGKILL);
  waitpid(trainer, nullptr, 0);
  EXPECT_FALSE(told.line(words));
}

TEST_F(KeepAwakeTest, AChildThatIsForkedMeanwhileReleasesNothing) {
  make_tool("exec cat >&2");
  std::optional<KeepAwake> awake;
  awake.emplace("somebody trains", path());
  Told told(told_);
  std::string words;
  ASSERT_TRUE(told.line(words));
  std::array<int, 2> asked{};
  ASSERT_EQ(pipe(asked.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    awake.reset();
    char byte = 0;
    close(asked[1]);
    _exit(read(asked[0], &byte, 1) == 0 ? 0 : 1);  // holds on to what it has until the parent has seen the tool end
  }
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), 0);
  awake.reset();
  EXPECT_FALSE(told.line(words));
  close(asked[0]);
  close(asked[1]);
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(KeepAwakeTest, SaysNothingWhereTheToolIsMissing) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  {
    const KeepAwake nowhere("somebody trains", "");
    const KeepAwake empty("somebody trains", path());
    EXPECT_TRUE(is_childless());
  }
  EXPECT_EQ(testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr(), "");
}

TEST_F(KeepAwakeTest, SaysNothingWhereTheToolRefuses) {
  make_tool("echo 'Failed to inhibit: Access denied' | tee /dev/stderr\nexit 1");
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  {
    const KeepAwake awake("somebody trains", path());
    Told told(told_);
    std::string words;
    while (told.line(words)) {
    }
  }
  EXPECT_EQ(testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr(), "");
  EXPECT_TRUE(is_childless());
}

}  // namespace
}  // namespace motley::machine

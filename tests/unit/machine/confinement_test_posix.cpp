#include "machine/confinement.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

namespace motley::machine {
namespace {

namespace fs = std::filesystem;

constexpr int kCannot = 77;

class ConfinementTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"cache", "secret"}) {
      fs::create_directories(home / name);
      std::ofstream(home / name / "file") << "x";
    }
  }
  void TearDown() override { fs::remove_all(home); }
  bool reads(const fs::path& path) const { return opens(path, O_RDONLY); }
  bool writes(const fs::path& path) const { return opens(path, O_WRONLY | O_CREAT); }
  static bool opens(const fs::path& path, int how) {
    const int file = open(path.c_str(), how | O_CLOEXEC, 0600);
    if (file >= 0) close(file);
    return file >= 0;
  }
  /// In a process of its own, since there is no way back: the number of the first expectation that does not hold, or 0.
  static int in_child(const std::function<int()>& body) {
    const pid_t child = fork();
    if (child == 0) _exit(body());
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  fs::path home = fs::path(testing::TempDir()) / ("motley-home-" + std::to_string(getpid()));
};

TEST_F(ConfinementTest, OnlyWhatIsOfferedInTheHomeIsOpened) {
  const int failed = in_child([&] {
    const Confinement allowed{.writable = {home / "cache"}, .home = home};
    if (!confine_files(allowed)) return kCannot;
    if (reads(home / "secret" / "file")) return 1;
    if (writes(home / "secret" / "file") || writes(home / "secret" / "new")) return 2;
    if (!reads(home / "cache" / "file") || !writes(home / "cache" / "new")) return 3;
    std::error_code problem;
    fs::create_directories(home / "cache" / "deep", problem);
    fs::rename(home / "cache" / "new", home / "cache" / "deep" / "moved", problem);
    fs::remove(home / "cache" / "deep" / "moved", problem);
    if (problem) return 4;
    if (!reads("/etc/passwd") || !reads("/proc/self/status") || !writes("/dev/null")) return 5;
    return writes(home.parent_path() / "motley-beside") ? 6 : 0;
  });
  if (failed == kCannot) GTEST_SKIP() << "this system has no Landlock";
  EXPECT_EQ(failed, 0);
}

TEST_F(ConfinementTest, AFileInMemoryOffersNotItsDirectory) {
  const int failed = in_child([&] {
    const int file = open((home / "secret" / "file").c_str(), O_RDONLY | O_CLOEXEC);
    if (mmap(nullptr, 1, PROT_READ, MAP_PRIVATE, file, 0) == MAP_FAILED) return 1;
    if (!confine_files({.writable = {home / "cache"}, .home = home})) return kCannot;
    return reads(home / "secret" / "file") ? 2 : 0;
  });
  if (failed == kCannot) GTEST_SKIP() << "this system has no Landlock";
  EXPECT_EQ(failed, 0);
}

TEST_F(ConfinementTest, WithoutAHomeEverythingMayBeRead) {
  const int failed = in_child([&] {
    if (!confine_files({.writable = {home / "cache"}})) return kCannot;
    if (!reads(home / "secret" / "file")) return 1;
    return writes(home / "secret" / "file") ? 2 : 0;
  });
  if (failed == kCannot) GTEST_SKIP() << "this system has no Landlock";
  EXPECT_EQ(failed, 0);
}

TEST_F(ConfinementTest, PrivilegesAreGivenUp) {
#ifdef __linux__
  const int failed = in_child([] {
    if (!give_up_privileges()) return 1;
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
      if (line == "NoNewPrivs:\t1") return 0;
    return 2;
  });
  EXPECT_EQ(failed, 0);
#endif
}

}  // namespace
}  // namespace motley::machine

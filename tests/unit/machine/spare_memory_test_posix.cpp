#include "machine/spare_memory.h"

#include <gtest/gtest.h>

#include <fstream>

namespace motley::machine {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t kMiB = 1 << 20;

// /proc and /sys as some system would show them.
class SpareMemory : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(root_);
    write("proc/meminfo", "MemTotal: 9999999 kB\nMemFree: 1 kB\nMemAvailable: 1048576 kB\n");
  }
  void TearDown() override { fs::remove_all(root_); }
  void write(const fs::path& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  void group2(const fs::path& path, const std::string& limit, std::uint64_t usage, const std::string& stat = "") {
    write(path / "memory.max", limit + "\n");
    write(path / "memory.current", std::to_string(usage) + "\n");
    write(path / "memory.stat", stat);
  }
  void group1(const fs::path& path, std::uint64_t limit, std::uint64_t usage, const std::string& stat = "") {
    write(path / "memory.limit_in_bytes", std::to_string(limit) + "\n");
    write(path / "memory.usage_in_bytes", std::to_string(usage) + "\n");
    write(path / "memory.stat", stat);
  }
  std::uint64_t spare() const { return spare_memory_bytes(root_).value_or(0); }

  fs::path root_;
};

TEST_F(SpareMemory, WithoutGroupsItIsWhatTheSystemCallsAvailable) { EXPECT_EQ(spare(), 1024 * kMiB); }

TEST_F(SpareMemory, NobodyKnowsWithoutASystemThatTells) {
  fs::remove(root_ / "proc/meminfo");
  EXPECT_FALSE(spare_memory_bytes(root_).has_value());
}

TEST_F(SpareMemory, TheTightestAncestorCounts) {
  write("proc/self/cgroup", "0::/a/b/c\n");
  write("proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  group2("sys/fs/cgroup/a", std::to_string(500 * kMiB), 100 * kMiB);
  group2("sys/fs/cgroup/a/b", std::to_string(300 * kMiB), 90 * kMiB);
  group2("sys/fs/cgroup/a/b/c", "max", 80 * kMiB);
  EXPECT_EQ(spare(), 210 * kMiB);
  write("sys/fs/cgroup/a/b/c/memory.high", std::to_string(100 * kMiB));
  EXPECT_EQ(spare(), 20 * kMiB);
}

TEST_F(SpareMemory, FilesThatWereReadGoAndProgramsStay) {
  write("proc/self/cgroup", "0::/a\n");
  write("proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  const auto bytes = [](std::uint64_t mebibytes) { return std::to_string(mebibytes * kMiB) + "\n"; };
  group2("sys/fs/cgroup/a", std::to_string(200 * kMiB), 150 * kMiB,
         "anon " + bytes(60) + "file_mapped " + bytes(30) + "inactive_file " + bytes(50) + "active_file " + bytes(40));
  EXPECT_EQ(spare(), 110 * kMiB);
}

TEST_F(SpareMemory, Version1CountsBesideAnEmptyVersion2) {
  write("proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/box\n0::/\n");
  write("proc/self/mountinfo",
        "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:5 - cgroup cgroup rw,memory\n"
        "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n");
  group1("sys/fs/cgroup/memory", 9223372036854771712ULL, 3000 * kMiB);
  group1("sys/fs/cgroup/memory/box", 256 * kMiB, 200 * kMiB,
         "inactive_file 1\ntotal_inactive_file " + std::to_string(10 * kMiB) + "\n");
  EXPECT_EQ(spare(), 66 * kMiB);
}

TEST_F(SpareMemory, AContainerSeesItsPartOfTheHierarchy) {
  // Docker without namespaces of control groups: paths start above what is mounted.
  write("proc/self/cgroup", "4:memory:/docker/0123\n");
  write("proc/self/mountinfo", "35 31 0:32 /docker/0123 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
  group1("sys/fs/cgroup/memory", 128 * kMiB, 100 * kMiB);
  EXPECT_EQ(spare(), 28 * kMiB);
}

TEST_F(SpareMemory, OverTheLimitThereIsNone) {
  write("proc/self/cgroup", "0::/a\n");
  write("proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  group2("sys/fs/cgroup/a", "1000", 2000);
  EXPECT_EQ(spare(), 0U);
}

TEST(CheckMemoryFor, SaysWhatWasExpectedAndFound) {
  EXPECT_TRUE(check_memory_for(1, "a byte", ""));
  const Status status = check_memory_for(std::uint64_t{1} << 60, "the data", "use less");
  if (!spare_memory_bytes()) GTEST_SKIP() << "this system does not tell";
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::memory);
  EXPECT_NE(status.error().message.find("the data: expected 1099511627776.0 MiB of free memory, found "),
            std::string::npos);
  EXPECT_EQ(status.error().hint, "use less");
}

}  // namespace
}  // namespace motley::machine

#include "machine/processor.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <thread>

namespace motley::machine {
namespace {

TEST(ProcessorTest, SaysWhatThisMachineHas) {
  EXPECT_FALSE(processor_name().empty());
  EXPECT_EQ(processor_name().find_first_of("\n\t"), std::string::npos);
  EXPECT_GT(memory_bytes(), std::uint64_t{64} << 20);
  EXPECT_GE(allowed_processors(), 1U);
  EXPECT_LE(allowed_processors(), std::max(1U, std::thread::hardware_concurrency()));
}

#ifdef __linux__

namespace fs = std::filesystem;

// /proc and /sys as some system would show them.
class Processors : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(root_);
  }
  void TearDown() override { fs::remove_all(root_); }
  void write(const fs::path& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  fs::path root_;
};

TEST_F(Processors, WithoutQuotasAreThoseOfTheMachine) {
  EXPECT_GE(usable_processors(root_), 1);
  write("proc/self/cgroup", "0::/\n");
  write("proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  write("sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_GE(usable_processors(root_), 1);
}

TEST_F(Processors, TheTightestQuotaCounts) {
  write("proc/self/cgroup", "0::/a/b\n");
  write("proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  write("sys/fs/cgroup/a/cpu.max", "30000 100000\n");
  write("sys/fs/cgroup/a/b/cpu.max", "70000 100000\n");
  EXPECT_DOUBLE_EQ(usable_processors(root_), 0.3);
}

TEST_F(Processors, OfTheFirstVersionToo) {
  write("proc/self/cgroup", "4:memory:/x\n3:cpu,cpuacct:/lab\n");
  write("proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n");
  write("sys/fs/cgroup/cpu/lab/cpu.cfs_quota_us", "35000\n");
  write("sys/fs/cgroup/cpu/lab/cpu.cfs_period_us", "50000\n");
  EXPECT_DOUBLE_EQ(usable_processors(root_), 0.7);
  write("sys/fs/cgroup/cpu/lab/cpu.cfs_quota_us", "-1\n");
  EXPECT_GE(usable_processors(root_), 1);
}

#endif

}  // namespace
}  // namespace motley::machine

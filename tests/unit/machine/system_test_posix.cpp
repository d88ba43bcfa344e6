#include "machine/system.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace motley::machine {
namespace {

namespace fs = std::filesystem;

/// A file system of its own.
class ThisSystem : public testing::Test {
 protected:
  ~ThisSystem() override { fs::remove_all(root_); }
  void write(const std::string& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  fs::path root_ = fs::path(testing::TempDir()) / ("motley-system-" + std::to_string(::getpid()));
};

TEST_F(ThisSystem, HasANameAndABuild) {
  EXPECT_FALSE(this_system().name.empty());
  EXPECT_FALSE(this_system().build.empty());
  EXPECT_FALSE(architecture().empty());
}

TEST_F(ThisSystem, WhichWslThisIs) {
  EXPECT_EQ(wsl_version(root_), 0) << "it does not say";
  write("proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
  EXPECT_EQ(wsl_version(root_), 0);
  write("proc/sys/kernel/osrelease", "4.4.0-19041-Microsoft\n");
  EXPECT_EQ(wsl_version(root_), 1);
  write("proc/sys/kernel/osrelease", "5.15.153.1-microsoft-standard-WSL2\n");
  EXPECT_EQ(wsl_version(root_), 2);
}

#ifdef __linux__
TEST_F(ThisSystem, ADistributionGoesByItsOwnName) {
  write("etc/os-release", "NAME=\"Ubuntu\"\nPRETTY_NAME=\"Ubuntu 24.04.1 LTS\"\nID=ubuntu\n");
  EXPECT_EQ(this_system(root_).name, "Ubuntu 24.04.1 LTS");
  fs::remove_all(root_ / "etc");
  EXPECT_EQ(this_system(root_).name, "Linux");
}
#endif

}  // namespace
}  // namespace motley::machine

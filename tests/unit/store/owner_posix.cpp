#include <gtest/gtest.h>
#include <sys/stat.h>

#include "owner.h"

namespace motley::store::test {

void expect_for_its_owner(const std::filesystem::path& path) {
  struct stat found{};
  ASSERT_EQ(::lstat(path.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777U, 0600U);
}

void let_others_write(const std::filesystem::path& path) { ASSERT_EQ(::chmod(path.c_str(), 0602), 0); }

}  // namespace motley::store::test

#include "runtime/worker/machine_key.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "../../store/temporary.h"

namespace motley::runtime {
namespace {

TEST(MachineKey, IsTheSameNextTime) {
  const store::test::TemporaryDirectory dir;
  const auto file = dir / "deep" / "key.pem";
  const transport::Identity first = machine_identity(file);
  EXPECT_EQ(machine_identity(file).spki, first.spki);
  struct stat found{};
  ASSERT_EQ(::stat(file.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600u);
}

TEST(MachineKey, WhatOthersMayWriteIsNotUsed) {
  const store::test::TemporaryDirectory dir;
  const auto file = dir / "key.pem";
  const transport::Identity first = machine_identity(file);
  ASSERT_EQ(::chmod(file.c_str(), 0666), 0);
  EXPECT_NE(machine_identity(file).spki, first.spki);
}

TEST(MachineKey, WithoutAPlaceItLastsAsLongAsTheProcess) {
  EXPECT_NE(machine_identity({}).spki, machine_identity({}).spki);
  EXPECT_NE(machine_identity("/dev/null/key.pem").spki, transport::Digest{});
}

}  // namespace
}  // namespace motley::runtime

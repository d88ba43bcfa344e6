#include "runtime/worker/machine_key.h"

#include <gtest/gtest.h>

#include "../../store/owner.h"
#include "../../store/temporary.h"

namespace motley::runtime {
namespace {

TEST(MachineKey, IsTheSameNextTime) {
  const store::test::TemporaryDirectory dir;
  const auto file = dir / "deep" / "key.pem";
  const transport::Identity first = machine_identity(file);
  EXPECT_EQ(machine_identity(file).spki, first.spki);
  store::test::expect_for_its_owner(file);
}

TEST(MachineKey, WhatOthersMayWriteIsNotUsed) {
  const store::test::TemporaryDirectory dir;
  const auto file = dir / "key.pem";
  const transport::Identity first = machine_identity(file);
  store::test::let_others_write(file);
  EXPECT_NE(machine_identity(file).spki, first.spki);
}

TEST(MachineKey, WithoutAPlaceItLastsAsLongAsTheProcess) {
  EXPECT_NE(machine_identity({}).spki, machine_identity({}).spki);
  EXPECT_NE(machine_identity("/dev/null/key.pem").spki, transport::Digest{});
}

}  // namespace
}  // namespace motley::runtime

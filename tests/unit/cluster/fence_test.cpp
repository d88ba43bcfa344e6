#include "cluster/fence.h"

#include <gtest/gtest.h>

namespace motley::cluster {
namespace {

TEST(Fence, IsIncarnationSession) {
  const Fence fence{.incarnation = 7, .session = 9};
  EXPECT_EQ(fence.pack(), 0x00000007'00000009U);
  EXPECT_EQ(Fence::unpack(fence.pack()), fence);
}

}  // namespace
}  // namespace motley::cluster

#include "cluster/pass.h"

#include <gtest/gtest.h>

#include "cluster/fence.h"

namespace motley::cluster {
namespace {

TEST(PassId, IsKindJobNumber) {
  const PassId id{.kind = PassKind::evaluate, .job = 0xABCD, .number = 0x12'3456'789A};
  EXPECT_EQ(id.pack(), 0x02ABCD12'3456789AU);
  EXPECT_EQ(PassId::unpack(id.pack()), id);
  EXPECT_EQ(PassId{.number = 5}.pack(), 0x01000000'00000005U);
}

TEST(Fence, IsIncarnationSession) {
  const Fence fence{.incarnation = 7, .session = 9};
  EXPECT_EQ(fence.pack(), 0x00000007'00000009U);
  EXPECT_EQ(Fence::unpack(fence.pack()), fence);
}

}  // namespace
}  // namespace motley::cluster

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

TEST(TrainRange, CutsEachEpochFromItsStart) {
  EXPECT_EQ(steps_per_epoch(40, 16), 3u);
  EXPECT_EQ(steps_per_epoch(32, 16), 2u);
  EXPECT_EQ(train_range(0, 40, 16), (PassRange{0, 0, 16}));
  EXPECT_EQ(train_range(2, 40, 16), (PassRange{0, 32, 8}));
  EXPECT_EQ(train_range(3, 40, 16), (PassRange{1, 0, 16}));
  EXPECT_EQ(train_range(7, 10, 64), (PassRange{7, 0, 10})) << "a batch beyond the data set is the data set";
}

}  // namespace
}  // namespace motley::cluster

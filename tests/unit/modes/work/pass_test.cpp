#include "modes/work/pass.h"

#include <gtest/gtest.h>

namespace motley::modes {
namespace {

TEST(PassId, IsKindJobNumber) {
  const PassId id{.kind = PassKind::evaluate, .job = 0xABCD, .number = 0x12'3456'789A};
  EXPECT_EQ(id.pack(), 0x02ABCD12'3456789AU);
  EXPECT_EQ(PassId::unpack(id.pack()), id);
  EXPECT_EQ(PassId{.number = 5}.pack(), 0x01000000'00000005U);
}

}  // namespace
}  // namespace motley::modes

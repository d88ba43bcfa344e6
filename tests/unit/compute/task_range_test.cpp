#include "compute/task_range.h"

#include <gtest/gtest.h>

namespace motley::compute {
namespace {

TEST(TaskRange, KeepsWhatItPromised) {
  TaskRange range;
  range.reset(16);
  EXPECT_FALSE(range.claim(17));
  EXPECT_TRUE(range.claim(8));
  EXPECT_EQ(range.set_limit(4), 8U) << "the second half of it is being computed";
  EXPECT_FALSE(range.claim(12)) << "it was given away";
  EXPECT_EQ(range.set_limit(20), 20U);
  EXPECT_TRUE(range.claim(12));
  range.freeze(12);
  EXPECT_TRUE(range.frozen());
  EXPECT_EQ(range.limit(), 12U) << "the raise came too late";
  EXPECT_EQ(range.set_limit(20), 12U);
  EXPECT_EQ(range.set_limit(4), 12U);
  EXPECT_EQ(range.set_limit(0), 0U);
  EXPECT_EQ(range.set_limit(8), 0U) << "what is abandoned stays so";
  range.reset(4);
  EXPECT_FALSE(range.frozen());
  EXPECT_EQ(range.set_limit(1), 1U);
}

TEST(TaskRange, FinishedEarlyItEndsWithWhatIsClaimed) {
  TaskRange range;
  range.reset(16);
  EXPECT_TRUE(range.claim(4));
  range.finish_early();
  EXPECT_EQ(range.limit(), 4U);
  EXPECT_EQ(range.set_limit(12), 4U) << "it cannot be extended";
  EXPECT_FALSE(range.claim(8));
  EXPECT_EQ(range.set_limit(0), 0U);
  range.reset(16);
  range.finish_early();
  EXPECT_EQ(range.limit(), 0U) << "nothing was begun";
  range.reset(16);
  EXPECT_TRUE(range.claim(16));
  range.freeze(16);
  range.finish_early();
  EXPECT_EQ(range.limit(), 16U);
}

}  // namespace
}  // namespace motley::compute

#include "transport/tcp/read_budget.h"

#include <gtest/gtest.h>

namespace motley::transport {
namespace {

TEST(ReadBudget, ReadsOneByteAboveTheLimitAndRefusesIt) {
  ReadBudget budget(false, 100);
  EXPECT_EQ(budget.at_most(1000), 101U);
  EXPECT_TRUE(budget.count(60, "there").ok());
  EXPECT_EQ(budget.at_most(1000), 41U);
  EXPECT_EQ(budget.at_most(10), 10U);
  const Status refused = budget.count(41, "there");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::refused);
  EXPECT_EQ(refused.error().message, "there sent more than 100 bytes before it had proven itself");
}

TEST(ReadBudget, WhoIsProvenIsReadWithoutLimit) {
  ReadBudget budget(false, 100);
  EXPECT_TRUE(budget.count(100, "there").ok());
  EXPECT_TRUE(budget.prove());
  EXPECT_FALSE(budget.prove());
  EXPECT_EQ(budget.at_most(1 << 20), std::size_t{1} << 20);
  EXPECT_TRUE(budget.count(1 << 20, "there").ok());
  EXPECT_EQ(budget.received(), (1U << 20) + 100U);
}

}  // namespace
}  // namespace motley::transport

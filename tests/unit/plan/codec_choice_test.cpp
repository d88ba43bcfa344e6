#include "plan/codec_choice.h"

#include <gtest/gtest.h>

namespace motley::plan {
namespace {

using codec::CodecId;

// Passes over a link that takes `wire` seconds for what goes by in fp32.
class CodecChoiceTest : public testing::Test {
 protected:
  void passes(int count, double compute, double wire) {
    for (int i = 0; i < count; ++i) choice.pass(compute, wire * part());
  }
  [[nodiscard]] double part() const {
    return static_cast<double>(codec::encoded_bytes(choice.codec(), 4096)) / (4 * 4096);
  }
  CodecChoice choice;
};

TEST_F(CodecChoiceTest, WhereTheLinkIsNotTheLimitNumbersStayExact) {
  passes(200, 0.1, 0.01);
  EXPECT_EQ(choice.codec(), CodecId::fp32);
}

TEST_F(CodecChoiceTest, TakesAsFewBitsAsAreNeeded) {
  passes(8, 0.1, 0.02);
  EXPECT_EQ(choice.codec(), CodecId::bf16);
  passes(200, 0.1, 0.02);
  EXPECT_EQ(choice.codec(), CodecId::bf16) << "is enough";
  passes(8, 0.1, 0.04);
  EXPECT_EQ(choice.codec(), CodecId::int8);
}

TEST_F(CodecChoiceTest, AVerySlowLinkIsNotWatchedForLong) {
  passes(2, 0.1, 0.6);
  EXPECT_EQ(choice.codec(), CodecId::int4);
}

TEST_F(CodecChoiceTest, ReturnsWhatTheWaitIsMultipliedBy) {
  EXPECT_EQ(choice.pass(0.1, 0.6), 1);
  EXPECT_NEAR(choice.pass(0.1, 0.6), 0.129, 0.001);
  CodecChoice one_way(0.5);
  one_way.pass(0.1, 0.6);
  EXPECT_NEAR(one_way.pass(0.1, 0.6), 0.5645, 0.001);
}

TEST_F(CodecChoiceTest, FewerBitsThatSaveNothingAreGivenUp) {
  for (int i = 0; i < 500; ++i) choice.pass(0.1, 0.03);  // it waits for something else
  EXPECT_EQ(choice.codec(), CodecId::fp32);
}

TEST_F(CodecChoiceTest, AFasterLinkBringsBitsBack) {
  passes(50, 0.1, 0.06);
  EXPECT_EQ(choice.codec(), CodecId::int4) << "int8 would still take 13 %";
  passes(300, 0.1, 0.001);
  EXPECT_EQ(choice.codec(), CodecId::fp32);
}

TEST_F(CodecChoiceTest, AResidualThatGrowsIsALimit) {
  passes(2, 0.1, 0.6);
  EXPECT_EQ(choice.residual(2.9), 1);
  EXPECT_GT(choice.residual(3.1), 1);
  EXPECT_EQ(choice.codec(), CodecId::int8);
  passes(300, 0.1, 0.6);
  EXPECT_EQ(choice.codec(), CodecId::int8) << "never int4 again";
}

TEST_F(CodecChoiceTest, ASlowVersionDecidesBeforeTheFirstPass) {
  EXPECT_EQ(choice.version(0.2), 1);
  EXPECT_NEAR(choice.version(0.8), 0.251, 0.001);
  EXPECT_EQ(choice.codec(), CodecId::int8);
  EXPECT_NEAR(choice.version(0.1), 0.251, 0.001);
}

}  // namespace
}  // namespace motley::plan

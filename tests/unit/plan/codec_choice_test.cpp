#include "plan/codec_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>

namespace motley::plan {
namespace {

using codec::CodecId;

// Passes of `compute` seconds, of which `wire` go by on the wire in fp32; every second is `noise` seconds longer, and
// the ones between as much shorter.
class CodecChoiceTest : public testing::Test {
 protected:
  void passes(int count, double compute, double wire, double noise = 0) {
    for (int i = 0; i < count; ++i) choice.pass(compute + (i % 2 == 0 ? noise : -noise), wire * part(), processors);
  }
  [[nodiscard]] double part() const {
    return static_cast<double>(codec::encoded_bytes(choice.codec(), 4096)) / (4 * 4096);
  }
  CodecChoice choice;
  ByCodec processors{};
  int passed_ = 0;
};

// The codec after 200 passes of a second of computing.
struct Row {
  const char* what;
  double wire, constant;  // seconds exposed: with fp32 and in proportion to the bytes; whatever the bytes
  ByCodec processors;     // seconds
  double noise;           // of computing, seconds to either side
  CodecId wanted;
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.what; }

class EndsFirst : public testing::TestWithParam<Row> {};

TEST_P(EndsFirst, IsTaken) {
  const Row& row = GetParam();
  CodecChoice choice;
  for (int i = 0; i < 200; ++i) {
    const double bytes = static_cast<double>(codec::encoded_bytes(choice.codec(), 4096)) / (4 * 4096);
    const double compute = 1 + of(row.processors, choice.codec()) + (i % 2 == 0 ? row.noise : -row.noise);
    choice.pass(compute, row.constant + row.wire * bytes, row.processors);
  }
  EXPECT_EQ(choice.codec(), row.wanted);
}

INSTANTIATE_TEST_SUITE_P(
    Table, EndsFirst,
    testing::Values(Row{"nothing on the wire", 0, 0, {}, 0, CodecId::fp32},
                    Row{"steps vary more than any codec saves", 0.01, 0, {}, 0.1, CodecId::fp32},
                    Row{"a slow link", 0.5, 0, {}, 0.02, CodecId::int4},
                    Row{"what int4 saves beyond int8 would not be seen", 0.08, 0, {}, 0.05, CodecId::int8},
                    Row{"what int8 saves beyond bf16 would not be seen", 0.08, 0, {}, 0.09, CodecId::bf16},
                    Row{"it waits for something else", 0, 0.3, {}, 0.02, CodecId::fp32},
                    Row{"the wire is hidden, encryption is not", 0, 0, {0.06, 0.035, 0.02, 0.015}, 0.02, CodecId::int8},
                    Row{"encoding costs more than sending", 0.01, 0, {0, 0.05, 0.05, 0.05}, 0.01, CodecId::fp32},
                    Row{"int4 is slow to encode here", 0.1, 0, {0.01, 0.01, 0.01, 0.05}, 0.001, CodecId::int8}),
    [](const auto& row) {
      std::string name = row.param.what;
      std::erase_if(name, [](char c) { return c == ','; });
      std::ranges::replace(name, ' ', '_');
      return name;
    });

TEST_F(CodecChoiceTest, AVerySlowLinkIsNotWatchedForLong) {
  passes(4, 0.1, 0.6, 0.005);
  EXPECT_EQ(choice.codec(), CodecId::int4);
}

TEST_F(CodecChoiceTest, TheFirstPassIsColdAndSaysNothing) {
  choice.pass(0.1, 2);
  passes(100, 0.1, 0, 0.002);
  EXPECT_EQ(choice.codec(), CodecId::fp32);
}

TEST_F(CodecChoiceTest, OneHiccupSaysNothing) {
  passes(40, 0.1, 0.001, 0.005);
  choice.pass(0.1, 3);
  passes(100, 0.1, 0.001, 0.005);
  EXPECT_EQ(choice.codec(), CodecId::fp32);
}

TEST_F(CodecChoiceTest, ReturnsWhatTheWaitIsMultipliedBy) {
  for (int i = 0; i < 2; ++i) EXPECT_EQ(choice.pass(0.1, 0.6), 1);
  EXPECT_NEAR(choice.pass(0.1, 0.6), 0.129, 0.001);
  CodecChoice one_way(0.5);
  for (int i = 0; i < 2; ++i) one_way.pass(0.1, 0.6);
  EXPECT_NEAR(one_way.pass(0.1, 0.6), 0.5645, 0.001);
}

// Whatever is tried on the way, the codec stands still in the end.
TEST_F(CodecChoiceTest, FewerBitsThatSaveNothingAreGivenUpForGood) {
  const auto pass = [&] { return choice.pass(0.1, 0.03 + (++passed_ % 2 == 0 ? 0.001 : -0.001)); };
  for (int i = 0; i < 200; ++i) pass();
  EXPECT_EQ(choice.codec(), CodecId::fp32);
  for (int i = 0; i < 500; ++i) EXPECT_EQ(pass(), 1);
}

TEST_F(CodecChoiceTest, ALinkThatBecomesSlowIsBelievedAfterOneThatWasNot) {
  for (int i = 0; i < 200; ++i) choice.pass(0.1, 0.03 + (i % 2 == 0 ? 0.001 : -0.001));
  ASSERT_EQ(choice.codec(), CodecId::fp32);
  passes(40, 0.1, 0.4, 0.002);
  EXPECT_EQ(choice.codec(), CodecId::int4);
}

TEST_F(CodecChoiceTest, AFasterLinkBringsBitsBack) {
  passes(50, 0.1, 0.6, 0.005);
  ASSERT_EQ(choice.codec(), CodecId::int4);
  passes(300, 0.1, 0.0005, 0.005);
  EXPECT_EQ(choice.codec(), CodecId::fp32);
}

TEST_F(CodecChoiceTest, AResidualThatGrowsIsALimit) {
  passes(4, 0.1, 0.6);
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

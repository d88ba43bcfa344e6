#include "engine/probes.h"

#include <gtest/gtest.h>

#include <limits>

#include "compute/probe.h"

namespace motley::engine {
namespace {

using modes::ProbeVerdict;

class ProbesTest : public testing::Test {
 protected:
  ProbesTest() {
    LayoutEntry first, last;
    first.name = "first";
    first.shape = {8, 8};
    last.name = "last";
    last.shape = {8};
    layout = *Layout::make({first, last});
    numbers.assign(compute::probe_numbers(layout), 0.5F);
    numbers[0] = 3;  // the state of the loss
  }
  bool keep(fleet::WorkerId worker, const std::vector<float>& of) {
    return probes.keep(worker, probe_bytes(of), layout);
  }
  /// Of a worker whose numbers are all larger by this factor.
  Probes::Compared compared(float factor) {
    std::vector<float> other = numbers;
    for (std::size_t i = 1; i < other.size(); ++i) other[i] *= factor;
    EXPECT_TRUE(keep(1, numbers));
    EXPECT_TRUE(keep(2, other));
    return probes.compare(2, 1, layout);
  }
  Layout layout;
  std::vector<float> numbers;
  Probes probes;
};

TEST_F(ProbesTest, BytesHaveNumbersOfAllTensorsOrSayNothing) {
  EXPECT_TRUE(keep(1, numbers));
  std::vector<float> shorter = numbers;
  shorter.pop_back();
  EXPECT_FALSE(keep(2, shorter));
  EXPECT_FALSE(keep(2, {}));
  EXPECT_EQ(probe_bytes(std::vector<float>{1, -2}), (std::vector<std::uint8_t>{0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}));
}

TEST_F(ProbesTest, WhatRoundingExplainsIsNotTold) {
  const Probes::Compared found = compared(1 + 1e-6F);
  EXPECT_EQ(found.verdict, ProbeVerdict::alike);
  EXPECT_EQ(found.text, "");
}

TEST_F(ProbesTest, ASmallDifferenceIsToldAndNoMore) {
  const Probes::Compared found = compared(1.01F);
  EXPECT_EQ(found.verdict, ProbeVerdict::alike);
  EXPECT_NE(found.text.find("differs by 0.99 % (2 tensors differ, of which first is the first)"), std::string::npos)
      << found.text;
}

TEST_F(ProbesTest, WhatNothingExplainsIsAnotherComputation) {
  EXPECT_EQ(compared(1.5F).verdict, ProbeVerdict::otherwise);
  const Probes::Compared infinite = compared(std::numeric_limits<float>::infinity());
  EXPECT_EQ(infinite.verdict, ProbeVerdict::otherwise);
  EXPECT_NE(infinite.text.find("beyond any number"), std::string::npos) << infinite.text;
}

TEST_F(ProbesTest, OfTwoStatesOfTheLossNothingIsSaid) {
  EXPECT_TRUE(keep(1, numbers));
  numbers[0] = 4;
  EXPECT_TRUE(keep(2, numbers));
  EXPECT_EQ(probes.compare(2, 1, layout).verdict, ProbeVerdict::of_other_states);
}

}  // namespace
}  // namespace motley::engine

#include "base/nearest.h"

#include <gtest/gtest.h>

#include <array>

namespace motley {
namespace {

constexpr std::array<std::string_view, 6> kKnown{"train.steps",    "train.seed", "train.global_batch",
                                                 "optimizer.kind", "mnist",      "fashion-mnist"};

TEST(Nearest, FindsTheWordThatWasMeant) {
  EXPECT_EQ(nearest("train.step", kKnown), "train.steps");
  EXPECT_EQ(nearest("Train.Sede", kKnown), "train.seed");
  EXPECT_EQ(nearest("train.globalbatch", kKnown), "train.global_batch");
  EXPECT_EQ(nearest("optimiser.kind", kKnown), "optimizer.kind");
  EXPECT_EQ(nearest("mnsit", kKnown), "mnist");
  EXPECT_EQ(nearest("fashion", kKnown), "fashion-mnist");
  EXPECT_EQ(nearest("mnist", kKnown), "mnist");
}

TEST(Nearest, IsSilentWhenNothingIsClose) {
  EXPECT_EQ(nearest("", kKnown), "");
  EXPECT_EQ(nearest("x", kKnown), "");
  EXPECT_EQ(nearest("cifar", kKnown), "");
  EXPECT_EQ(nearest("learning_rate", kKnown), "");
  EXPECT_EQ(nearest(std::string(100000, 'm'), kKnown), "");
  EXPECT_EQ(nearest("mnist", {}), "");
}

TEST(Nearest, PrefersTheFirstOfEquals) {
  constexpr std::array<std::string_view, 2> kTwo{"abcd", "abce"};
  EXPECT_EQ(nearest("abcf", kTwo), "abcd");
}

}  // namespace
}  // namespace motley

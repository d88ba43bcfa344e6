#include "base/glob.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

TEST(Glob, StarsAndQuestionMarksStandForOthers) {
  EXPECT_TRUE(matches_glob("", ""));
  EXPECT_TRUE(matches_glob("*", ""));
  EXPECT_TRUE(matches_glob("*.bias", "h.0.bias"));
  EXPECT_TRUE(matches_glob("*.ln_?.weight", "h.0.ln_1.weight"));
  EXPECT_TRUE(matches_glob("a*b*c", "aXbbYcbc"));
  EXPECT_FALSE(matches_glob("*.ln_?.weight", "h.0.ln_12.weight"));
  EXPECT_FALSE(matches_glob("?", ""));
  EXPECT_FALSE(matches_glob("a*b", "abc"));
  EXPECT_FALSE(matches_glob("", "a"));
}

}  // namespace
}  // namespace motley

#include "wire/script.h"

#include <gtest/gtest.h>

#include <string>

namespace motley::wire {
namespace {

const std::string kRun =
    "class Net\t=Module\nloss()\t#00c0ffee\nweights\t#0:0badcafe:12,-300000,0,999\nw\t=0.5\nlayers\t#0:12ab\n";

std::string changed(const std::string& from, const std::string& to) {
  std::string text = kRun;
  text.replace(text.find(from), from.size(), to);
  return text;
}

std::string found(const std::string& there) {
  const auto other = script_difference(kRun, there);
  return other ? other->found : "the same";
}

TEST(Script, EqualWordsAreOfOneScript) {
  EXPECT_EQ(found(kRun), "the same");
  EXPECT_FALSE(script_difference("", ""));
}

TEST(Script, WhatDiffersIsTold) {
  EXPECT_EQ(found(changed("#00c0ffee", "#00c0ffef")), "another script: not the same in loss()");
  EXPECT_EQ(found(changed("=0.5", "=0.3")), "another script: not the same in w (0.3 instead of 0.5)");
  EXPECT_EQ(found(changed("12ab", "12ac")), "another script: not the same in layers");
  EXPECT_EQ(found(changed("=0.5", "#0:12ab")), "another script: not the same in w");
  const auto other = script_difference(kRun, changed("=0.5", "=0.3"));
  ASSERT_TRUE(other);
  EXPECT_EQ(other->expected, "the script of the run");
  EXPECT_NE(other->hint.find("--fetch"), std::string::npos);
}

TEST(Script, CodeComesBeforeValues) {
  std::string there = changed("=0.5", "=0.3");
  there.replace(there.find("=Module"), 7, "=Base");
  there.replace(there.find("#00c0ffee"), 9, "#00000000");
  there.replace(there.find("12ab"), 4, "12ac");
  EXPECT_EQ(found(there),
            "another script: not the same in loss(), class Net (Base instead of Module), w (0.3 instead of 0.5) and 1 "
            "more");
}

TEST(Script, NumbersMayDifferInTheirLastBits) {
  EXPECT_EQ(found(changed("-300000", "-300100")), "the same");
  EXPECT_EQ(found(changed("-300000", "-300101")), "another script: not the same in weights");
}

TEST(Script, WhatOneAloneHasSaysNothing) {
  EXPECT_EQ(found(""), "the same");
  EXPECT_EQ(found("other()\t#1\n"), "the same");
  EXPECT_FALSE(script_difference("", kRun));
}

TEST(Script, AnythingMayCome) {
  for (std::size_t length = 0; length < kRun.size(); ++length) {
    const auto other = script_difference(kRun, kRun.substr(0, length));
    if (other) {
      EXPECT_LT(other->found.size(), 300U) << length;
    }
  }
  EXPECT_EQ(found("w"), "another script: not the same in w");
  EXPECT_EQ(found("w\t=0.3\x1b[2J\n"), "another script: not the same in w (0.3?[2J instead of 0.5)");
  EXPECT_EQ(found("w\t=" + std::string(1000, '1') + "\n"),
            "another script: not the same in w (" + std::string(60, '1') + "… instead of 0.5)");
  EXPECT_EQ(found("w\t=0.3\nw\t=0.5\n"), "another script: not the same in w (0.3 instead of 0.5)");
  EXPECT_EQ(found(std::string(1000, '\n') + std::string(1000, '\t')), "the same");
}

}  // namespace
}  // namespace motley::wire

#include "wire/fingerprint.h"

#include <gtest/gtest.h>

namespace motley::wire {
namespace {

const std::string kHead = "200 samples of (float32 [20], int)";
const std::string kText = kHead + "; contents: 17:00c0ffee:12,-300000,0,999 4:0badcafe 199:12345678:1,2,3,4";

std::string with(const std::string& from, const std::string& to) {
  std::string text = kText;
  text.replace(text.find(from), from.size(), to);
  return text;
}

TEST(Fingerprint, EqualTextsAreEqual) {
  EXPECT_FALSE(fingerprint_difference(kText, kText));
  EXPECT_FALSE(fingerprint_difference(kHead, kHead));
  EXPECT_FALSE(fingerprint_difference("", ""));
}

TEST(Fingerprint, FiguresDifferInTheirLastBitsBetweenMachines) {
  EXPECT_FALSE(fingerprint_difference(kText, with("-300000", "-300100")));
  EXPECT_TRUE(fingerprint_difference(kText, with("-300000", "-300101")));
  EXPECT_FALSE(fingerprint_difference(kText, with(":12,", ":-88,")));
  EXPECT_TRUE(fingerprint_difference(kText, with(":12,", ":-89,")));
  EXPECT_TRUE(fingerprint_difference(with(":12,", ":9223372036854775807,"), with(":12,", ":-9223372036854775808,")));
}

TEST(Fingerprint, EverythingElseIsExact) {
  for (const auto& [from, to] :
       {std::pair{"0badcafe", "0badcaff"}, std::pair{"4:0bad", "5:0bad"}, std::pair{",999", ""},
        std::pair{",999", ",999,1"}, std::pair{"0badcafe", "0badcafe:1"}, std::pair{" 199:12345678:1,2,3,4", ""},
        std::pair{",999", ",x"}}) {
    EXPECT_TRUE(fingerprint_difference(kText, with(from, to))) << from << " -> " << to;
    EXPECT_TRUE(fingerprint_difference(with(from, to), kText)) << from << " -> " << to;
  }
}

TEST(Fingerprint, SaysWhatDiffers) {
  auto found = fingerprint_difference(kText, with("0badcafe", "0badcaff"));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->expected, kHead + " with the same contents");
  EXPECT_EQ(found->found, "as many, but other samples: 1 of 3 that were compared differ, the first of them sample 4");
  EXPECT_NE(found->hint.find("manual_seed(0)"), std::string::npos);
  found = fingerprint_difference(kText, with("200 samples", "100 samples"));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->expected, kHead);
  EXPECT_EQ(found->found, "100" + kHead.substr(3)) << "contents say nothing to people";
}

TEST(Fingerprint, WithoutContentsTheHeadsDecide) {
  EXPECT_FALSE(fingerprint_difference(kText, kHead));
  EXPECT_FALSE(fingerprint_difference(kHead, kText));
}

}  // namespace
}  // namespace motley::wire

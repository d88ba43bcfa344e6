#include "wire/fingerprint.h"

#include <gtest/gtest.h>

#include <sstream>

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

TEST(Fingerprint, AHashIsComparedWhereBothHaveOne) {
  const std::string hashed = kHead + "; hash: 17";
  EXPECT_FALSE(fingerprint_difference(hashed, hashed));
  EXPECT_FALSE(fingerprint_difference(hashed, kText));
  EXPECT_FALSE(fingerprint_difference(kHead, hashed));
  const auto found = fingerprint_difference(hashed, kHead + "; hash: 18");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->expected, kHead + " with the same contents");
  EXPECT_EQ(found->found, kHead + " with other contents");
  EXPECT_TRUE(fingerprint_difference(hashed, "1" + hashed));
}

// --- arrays as a whole ---

constexpr std::uint64_t kSize = 1000;

std::string whole(std::uint64_t sum, std::uint64_t numbered, const std::string& behind = "",
                  const std::string& kind = "uint8[1000x784],1,1") {
  std::ostringstream out;
  out << kText << "; whole: targets=int64[1000],1,1:5:7 data=" << kind << ':' << std::hex << sum << ':' << numbered;
  return out.str() + behind;
}

/// The sums when the hash of block `number` is larger by `more`, modulo the prime.
std::string changed(std::uint64_t number, std::uint64_t more, const std::string& behind = "",
                    const std::string& kind = "uint8[1000x784],1,1") {
  const std::uint64_t moved = (number + 1) % kHashPrime * (more % kHashPrime) % kHashPrime;
  return whole((11 + more) % kHashPrime, (13 + moved) % kHashPrime, behind, kind);
}

TEST(Fingerprint, OneSampleThatDiffersHasANumber) {
  EXPECT_FALSE(fingerprint_difference(whole(11, 13), whole(11, 13)));
  for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{417}, kSize - 1}) {
    for (const std::uint64_t more : {std::uint64_t{1}, std::uint64_t{0xfeedbeef}, kHashPrime - 1}) {
      const auto found = fingerprint_difference(whole(11, 13), changed(number, more));
      ASSERT_TRUE(found);
      EXPECT_EQ(found->expected, kHead + " with the same contents");
      EXPECT_EQ(found->found,
                "as many, but sample " + std::to_string(number) + " alone differs, in the values of data");
    }
  }
  const auto several = fingerprint_difference(whole(11, 13), changed(kSize, 5));
  ASSERT_TRUE(several) << "there is no such sample, so there are several";
  EXPECT_EQ(several->found, "as many, but several samples differ in the values of data");
  EXPECT_TRUE(fingerprint_difference(whole(11, 13), whole(11, 14)));
}

TEST(Fingerprint, BlocksOfSamplesAreNamedByTheirFirstAndLast) {
  const std::string kind = "uint8[1000x784],4,8";
  const auto found = fingerprint_difference(whole(11, 13, "", kind), changed(3, 9, "", kind));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->found, "as many, but one of the samples 24 to 27 alone differs, in the values of data");
}

TEST(Fingerprint, ArraysOfAnotherKindAreNamed) {
  const auto found = fingerprint_difference(whole(11, 13), whole(11, 13, "", "float32[1000x784],1,1"));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->found, "as many, but data is float32[1000x784] instead of uint8[1000x784]");
  EXPECT_FALSE(fingerprint_difference(whole(11, 13), kText)) << "an older worker compares what it knows";
  EXPECT_FALSE(fingerprint_difference(kText, whole(11, 13)));
}

TEST(Fingerprint, RoundingOfManySamplesIsNoDifferenceAndOneSampleIs) {
  const std::string here = whole(11, 13, ":100000,-200000,300000,0,999");
  // The root of 1000 is below 32: 20 for each of them where many differ, 10 and one for each where one does.
  EXPECT_FALSE(fingerprint_difference(here, changed(kSize, 5, ":100640,-200640,299360,0,1099")));
  EXPECT_TRUE(fingerprint_difference(here, changed(kSize, 5, ":100641,-200000,300000,0,999")));
  EXPECT_TRUE(fingerprint_difference(here, changed(kSize, 5, ":100000,-200000,300000,0,1100")));
  EXPECT_FALSE(fingerprint_difference(here, changed(7, 5, ":100042,-200000,300000,0,999")));
  EXPECT_TRUE(fingerprint_difference(here, changed(7, 5, ":100043,-200000,300000,0,999")));
  for (const char* odd : {"", ":", ":1", ":100000,-200000,300000,0", ":100000,-200000,300000,0,999,1"})
    EXPECT_TRUE(fingerprint_difference(here, changed(kSize, 5, odd))) << odd;
}

TEST(Fingerprint, ArraysThatCannotBeReadAreOthers) {
  for (const char* odd :
       {"x", "data=", "data=uint8[1000x784],1,1:b", "data=uint8[1000x784],0,0:b:d", "data=uint8[1000x784],2,1:b:d",
        "data=uint8[1000x784],1,1:fffffffb:d", "data=uint8[],1,1:b:d", "data=uint8[99999999999999999999],1,1:b:d"})
    EXPECT_TRUE(fingerprint_difference(whole(11, 13), kText + "; whole: " + odd)) << odd;
}

}  // namespace
}  // namespace motley::wire

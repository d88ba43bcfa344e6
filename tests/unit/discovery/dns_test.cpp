#include "discovery/dns.h"

#include <gtest/gtest.h>

#include <string>

#include "base/hex.h"

namespace motley::discovery {
namespace {

std::vector<std::byte> from(const std::string& hex) {
  std::vector<std::uint8_t> bytes(hex.size() / 2);
  EXPECT_TRUE(from_hex(hex, bytes)) << hex;
  const auto view = std::as_bytes(std::span(bytes));
  return {view.begin(), view.end()};
}

std::string text_of(const std::vector<std::byte>& bytes) {
  return to_hex({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
}

Message everything() {
  const Name type{"_motley", "_tcp", "local"}, instance{"desktop 0a1b2c3d", "_motley", "_tcp", "local"};
  const Name host{"motley-0a1b", "local"};
  Message message{.id = 7, .response = true, .questions = {{type, Kind::ptr}, {host, Kind::any}}};
  message.answers = {{.name = type, .kind = Kind::ptr, .seconds = 120, .target = instance}};
  message.additional = {
      {.name = instance, .kind = Kind::srv, .unique = true, .seconds = 120, .target = host, .port = 7117},
      {.name = instance, .kind = Kind::txt, .seconds = 4500, .texts = {"v=1", "name=desktop", ""}},
      {.name = host, .kind = Kind::a, .unique = true, .seconds = 65536, .ip = {192, 168, 1, 7}}};
  return message;
}

// As RFC 1035 draws it: 12 bytes of header, three labels, PTR, IN.
TEST(Dns, AQuestionIsWrittenAsTheRfcSays) {
  const Message question{.questions = {{{"_motley", "_tcp", "local"}, Kind::ptr}}};
  EXPECT_EQ(text_of(write(question)),
            "000000000001000000000000"
            "075f6d6f746c6579045f746370056c6f63616c00"
            "000c0001");
}

TEST(Dns, WhatIsWrittenIsRead) { EXPECT_EQ(parse(write(everything())), everything()); }

TEST(Dns, NamesMayPointBack) {
  const auto message =
      parse(from("000084000000000200000000"
                 "075f6d6f746c6579045f746370056c6f63616c00000c000100000078000401"
                 "61c00c"
                 "c02bc02b"));
  EXPECT_FALSE(message);  // the second record ends within its name
  const auto whole =
      parse(from("000084000000000200000000"
                 "075f6d6f746c6579045f746370056c6f63616c00000c00010000007800040161c00c"
                 "c02a001080010000007800020176"));
  ASSERT_TRUE(whole);
  ASSERT_EQ(whole->answers.size(), 2U);
  EXPECT_EQ(whole->answers[0].target, (Name{"a", "_motley", "_tcp", "local"}));
  EXPECT_EQ(whole->answers[1].name, whole->answers[0].target);
  EXPECT_EQ(whole->answers[1].texts, std::vector<std::string>{"v"});
  EXPECT_TRUE(whole->answers[1].unique);
}

TEST(Dns, PointersThatLeadForwardsOrToThemselvesAreRefused) {
  for (const char* name : {"c00c", "c00d", "c0ff", "016101", "0161c00c", "0161c00e", "4161", "8161"})
    EXPECT_FALSE(parse(from(std::string("000000000001000000000000") + name + "000c0001"))) << name;
}

TEST(Dns, LongNamesAndManyRecordsAreRefused) {
  std::string labels;
  for (int i = 0; i < 127; ++i) labels += "0161";
  const std::string header = "000000000001000000000000";
  EXPECT_TRUE(parse(from(header + labels + "00000c0001")));
  EXPECT_FALSE(parse(from(header + labels + "016100000c0001")));
  EXPECT_FALSE(parse(from("0000000000810000000000000000000000")));
  EXPECT_FALSE(parse(std::vector<std::byte>(kMessageBytesMax + 1)));
}

TEST(Dns, WhatIsNoQuestionAndNoAnswerIsRefused) {
  EXPECT_FALSE(parse(from("000028000000000000000000"))) << "an update";
  EXPECT_FALSE(parse(from("000084030000000000000000"))) << "no such name";
  EXPECT_TRUE(parse(from("000084000000000000000000")));
}

TEST(Dns, QuestionsAndRecordsOfOtherKindsArePassedOver) {
  const auto message =
      parse(from("000084000002000200000000"
                 "0161000001001c0001610000ff0001"
                 "016100001c000100000001001000000000000000000000000000000001"
                 "0161000001000100000001000401020304"));
  EXPECT_FALSE(message);  // the second question's name is cut short
  const auto good =
      parse(from("000084000002000200000000"
                 "016100001c0001016100000c0001"
                 "016100001c000100000001001000000000000000000000000000000001"
                 "0161000001000100000001000401020304"));
  ASSERT_TRUE(good);
  ASSERT_EQ(good->questions.size(), 1U);
  ASSERT_EQ(good->answers.size(), 1U);
  EXPECT_EQ(good->answers[0].ip, (std::array<std::uint8_t, 4>{1, 2, 3, 4}));
}

TEST(Dns, EachCutIsRefusedOrReadsLess) {
  const std::vector<std::byte> whole = write(everything());
  for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(parse(std::span(whole).first(size))) << size;
}

TEST(Dns, NamesAreTheSameInEitherCase) {
  EXPECT_TRUE(same_name({"_Motley", "_TCP", "local"}, {"_motley", "_tcp", "LOCAL"}));
  EXPECT_FALSE(same_name({"_motley", "_tcp"}, {"_motley", "_tcp", "local"}));
  EXPECT_FALSE(same_name({"a.b"}, {"a", "b"}));
}

}  // namespace
}  // namespace motley::discovery

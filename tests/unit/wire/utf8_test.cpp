#include "wire/utf8.h"

#include <gtest/gtest.h>

namespace motley::wire {
namespace {

TEST(Utf8, WellFormed) {
  for (const std::string_view text :
       {std::string_view(""), std::string_view("plain"), std::string_view("\0x", 2), std::string_view("\xC2\x80"),
        std::string_view("\xDF\xBF"), std::string_view("\xE0\xA0\x80"), std::string_view("\xED\x9F\xBF"),
        std::string_view("\xEE\x80\x80"), std::string_view("\xEF\xBF\xBF"), std::string_view("\xF0\x90\x80\x80"),
        std::string_view("\xF4\x8F\xBF\xBF")}) {
    EXPECT_TRUE(is_utf8(text)) << testing::PrintToString(text);
  }
}

TEST(Utf8, IllFormed) {
  for (const std::string_view text :
       {std::string_view("\x80"), std::string_view("\xBF"), std::string_view("\xC0\x80"), std::string_view("\xC1\xBF"),
        std::string_view("\xC2"), std::string_view("\xC2x"), std::string_view("\xE0\x9F\xBF"),
        std::string_view("\xED\xA0\x80"), std::string_view("\xE2\x84"), std::string_view("\xE2\x84x"),
        std::string_view("\xF0\x8F\xBF\xBF"), std::string_view("\xF4\x90\x80\x80"),
        std::string_view("\xF5\x80\x80\x80"), std::string_view("\xF0\x90\x80"), std::string_view("\xFF"),
        std::string_view("ok\xFE")}) {
    EXPECT_FALSE(is_utf8(text)) << testing::PrintToString(text);
    EXPECT_TRUE(is_utf8(to_utf8(text, 100)));
  }
}

TEST(Utf8, CutsBetweenCharacters) {
  EXPECT_EQ(to_utf8("a\xE2\x84\xA2z", 5), "a\xE2\x84\xA2z");
  EXPECT_EQ(to_utf8("a\xE2\x84\xA2z", 4), "a\xE2\x84\xA2");
  EXPECT_EQ(to_utf8("a\xE2\x84\xA2z", 3), "a");
  EXPECT_EQ(to_utf8("a\xE2\x84\xA2z", 0), "");
}

TEST(Utf8, EachWrongByteBecomesAQuestionMark) { EXPECT_EQ(to_utf8("b\xFCro \xE2\x84", 100), "b?ro ??"); }

}  // namespace
}  // namespace motley::wire

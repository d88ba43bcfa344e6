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

TEST(Utf8, NothingThatSteersATerminalIsPrintable) {
  EXPECT_EQ(to_printable("\x1B[2J\x1B]0;x\x07", 64), "?[2J?]0;x?");
  EXPECT_EQ(to_printable("laptop\n\ton another machine:\r", 64), "laptop  on another machine: ");
  EXPECT_EQ(to_printable("a\x7F\xC2\x9B\xE2\x80\xAE\xE2\x81\xA6\xEF\xBB\xBFz", 64), "a?????z");
  EXPECT_EQ(to_printable("b\xC3\xBCro \xE2\x84\xA2 \xF0\x9F\x92\xBB\xC2\xA0", 64),
            "b\xC3\xBCro \xE2\x84\xA2 \xF0\x9F\x92\xBB\xC2\xA0");
}

TEST(Utf8, PrintableTextIsCutByCharacters) {
  EXPECT_EQ(to_printable("\xC3\xBC\xC3\xBC\xC3\xBC", 3), "\xC3\xBC\xC3\xBC\xC3\xBC");
  EXPECT_EQ(to_printable("\xC3\xBC\xC3\xBC\xC3\xBCz", 3), "\xC3\xBC\xC3\xBC…");
  EXPECT_EQ(to_printable("ab", 1), "…");
  EXPECT_EQ(to_printable("", 1), "");
}

TEST(Utf8, EachWrongByteBecomesAQuestionMark) { EXPECT_EQ(to_utf8("b\xFCro \xE2\x84", 100), "b?ro ??"); }

}  // namespace
}  // namespace motley::wire

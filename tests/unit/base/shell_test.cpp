#include "base/shell.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

TEST(Shell, PlainWordsAreAsTheyAre) {
  EXPECT_EQ(in_shell("runs/gpt-mini_2.1"), "runs/gpt-mini_2.1");
  EXPECT_EQ(in_shell("--lr=1e-3"), "--lr=1e-3");
}

TEST(Shell, OthersAreReadBack) {
  EXPECT_EQ(in_shell(""), "''");
  EXPECT_EQ(in_shell("my runs/1"), "'my runs/1'");
  EXPECT_EQ(in_shell("it's $HOME"), "'it'\\''s $HOME'");
  EXPECT_EQ(in_shell("gr\xc3\xb6\xc3\x9f"
                     "e"),
            "'gr\xc3\xb6\xc3\x9f"
            "e'");
  EXPECT_EQ(in_shell("two\nlines"), "'two\nlines'");
}

TEST(Shell, SeveralWords) {
  EXPECT_EQ(in_shell(std::vector<std::string>{"train", "a b.py", "--lr", ""}), "train 'a b.py' --lr ''");
  EXPECT_EQ(in_shell(std::vector<std::string>{}), "");
}

}  // namespace
}  // namespace motley

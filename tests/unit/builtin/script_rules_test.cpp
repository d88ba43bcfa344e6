#include "builtin/script_rules.h"

#include <gtest/gtest.h>

namespace motley::builtin {
namespace {

std::string said_of(const Status& status) { return status ? std::string() : status.error().message; }

TEST(ScriptRulesTest, OnlyAnArchiveIsRead) {
  EXPECT_TRUE(ScriptRules::check_start("PK\x03\x04"));
  for (const char* start : {"", "PK", "\x80\x02}q"})
    EXPECT_NE(said_of(ScriptRules::check_start(start)).find("no zip archive"), std::string::npos);
}

TEST(ScriptRulesTest, RecordsDifferByMoreThanCaseAndTextIsSmall) {
  ScriptRules rules;
  EXPECT_FALSE(*rules.check_record("data/0", std::uint64_t{1} << 40));
  EXPECT_TRUE(*rules.check_record("code/a.py", 64 << 20));
  EXPECT_FALSE(rules.check_record("code/A.py", 1).ok());
  EXPECT_FALSE(rules.check_record("code/b.py", (64 << 20) + 1).ok());
}

TEST(ScriptRulesTest, TextThatRunsWhenLoadedIsRefused) {
  EXPECT_TRUE(ScriptRules::check_text("def forward(self, x):\n    return x"));
  EXPECT_FALSE(ScriptRules::check_text("def __setstate__(self, path):"));
  EXPECT_FALSE(ScriptRules::check_text("c__torch__.torch\nclasses\nmine\n"));
}

TEST(ScriptRulesTest, WhatDoesMoreThanComputeIsNamed) {
  ScriptRules rules;
  rules.uses_operator("aten::conv2d");
  rules.uses_type("Tensor");
  EXPECT_TRUE(rules.check_uses());
  for (const char* name : {"aten::from_file", "prim::Print", "prim::rpc_async", "mine::write"})
    rules.uses_operator(name);
  rules.uses_type("__torch__.torch.classes.mine.Thing");
  rules.calls_library();
  const std::string said = said_of(rules.check_uses());
  constexpr const char* kUses =
      "uses classes of a library, functions of a library, ops.mine.write, ops.prim.rpc_async, print and 1 more";
  EXPECT_NE(said.find(kUses), std::string::npos) << said;
}

TEST(ScriptRulesTest, WhatAFileMakesTorchSayIsOnePrintableLine) {
  const std::string said = unreadable_script(7, "\n\nexpected \x1b[2J\nsecond").message;
  EXPECT_NE(said.find("(7 bytes): expected "), std::string::npos);
  EXPECT_EQ(said.find('\x1b'), std::string::npos);
  EXPECT_EQ(said.find("second"), std::string::npos);
}

}  // namespace
}  // namespace motley::builtin

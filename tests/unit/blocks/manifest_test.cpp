#include "blocks/manifest.h"

#include <gtest/gtest.h>

#include <string>

#include "wire/limits.h"

namespace motley::blocks {
namespace {

Listed file(std::string name, std::uint64_t size, std::uint8_t byte = 0xab) {
  const std::uint64_t blocks = (size + wire::kBlockBytesMax - 1) / wire::kBlockBytesMax;
  return {.name = std::move(name), .size = size, .hashes = std::vector<std::uint8_t>(32 * blocks, byte)};
}

Manifest manifest() { return {.name = "data", .files = {file("train/x.npy", 5), file("train/y.npy", 0)}}; }

std::string hex(std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) text += "ab";
  return text;
}

TEST(Manifest, IsTheTextThatPythonWrites) {
  EXPECT_EQ(to_text(manifest()), R"({"motley":1,"name":"data","directory":true,"files":[["train/x.npy",5,")" + hex(32) +
                                     R"("],["train/y.npy",0,""]]})");
}

TEST(Manifest, ComesBack) {
  Manifest made = manifest();
  made.files.push_back(file("test/größe.bin", 3 * wire::kBlockBytesMax + 7, 0x12));
  const Result<Manifest> read = parse_manifest(to_text(made));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(to_text(*read), to_text(made));
  const Listed& last = read->files.back();
  EXPECT_EQ(last.count(), 4U);
  EXPECT_EQ(last.bytes(0), wire::kBlockBytesMax);
  EXPECT_EQ(last.bytes(3), 7U);
  EXPECT_EQ(last.hash(3)[31], 0x12);
  EXPECT_EQ(read->size(), 3 * wire::kBlockBytesMax + 12);
}

TEST(Manifest, NoPieceOfItIsOne) {
  const std::string text = to_text(manifest());
  for (std::size_t count = 0; count < text.size(); ++count)
    EXPECT_FALSE(parse_manifest(text.substr(0, count)).ok()) << count;
  EXPECT_FALSE(parse_manifest(text + " ").ok());
}

TEST(Manifest, OnlyItsOwnFormIsTaken) {
  const std::string text = to_text(manifest());
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    return parse_manifest(changed).ok();
  };
  EXPECT_TRUE(with("5", "7"));
  EXPECT_FALSE(with(",5,", ", 5,"));
  EXPECT_FALSE(with(",5,", ",05,"));
  EXPECT_FALSE(with(",5,", ",-5,"));
  EXPECT_FALSE(with(",5,", ",0,"));  // of no block
  EXPECT_FALSE(with(",5,", ",18446744073709551615,"));
  EXPECT_FALSE(with(",5,", ",18446744073709551616,"));
  EXPECT_FALSE(with("ab", "AB"));
  EXPECT_FALSE(with("ab", "a"));
  EXPECT_FALSE(with("ab", "xy"));
  EXPECT_FALSE(with("true", "false"));
  EXPECT_FALSE(with("\"motley\":1", "\"motley\":2"));
  EXPECT_FALSE(with("train/x", "train\\u002fx"));
  EXPECT_FALSE(parse_manifest(R"({"motley":1,"name":"data","directory":true,"files":[]})").ok());
}

TEST(Manifest, NamesFitOnEverySystemAndLeadNowhereElse) {
  const auto fits = [](std::initializer_list<std::string> names) {
    Manifest made{.name = "data"};
    for (const std::string& name : names) made.files.push_back(file(name, 0));
    return parse_manifest(to_text(made)).ok();
  };
  for (const std::string name : {"a", "a/b.c", "größe", "…", ".hidden", "com", "com10", "console", "a b"})
    EXPECT_TRUE(fits({name})) << name;
  for (const std::string name : {"",          ".",       "..",    "/a",       "a/",           "a//b",
                                 "../a",      "a/../b",  "a/.",   "a:b",      "a\\b",         "a|b",
                                 "a*",        "a?",      "<a",    "a\nb",     "a.",           "a ",
                                 "con",       "CON.txt", "a/Nul", "com1",     "lpt9.x",       "conin$",
                                 "com\u00b9", "\x7f",    "\xff",  "\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80",
                                 "\xe2\x82"})
    EXPECT_FALSE(fits({name})) << name;
  EXPECT_FALSE(fits({std::string(256, 'a')}));
  EXPECT_TRUE(fits({std::string(255, 'a')}));
  std::string deep = "a";
  for (int i = 0; i < 31; ++i) deep += "/a";
  EXPECT_TRUE(fits({deep}));
  EXPECT_FALSE(fits({deep + "/a"}));
  EXPECT_FALSE(fits({"a/" + std::string(200, 'b') + "/" + std::string(200, 'b') + "/" + std::string(200, 'b') + "/" +
                     std::string(200, 'b') + "/" + std::string(230, 'b')}));
  EXPECT_TRUE(fits({"a/b", "a/c", "b"}));
  EXPECT_FALSE(fits({"a", "a"}));
  EXPECT_FALSE(fits({"a/b", "A/c"}));
  EXPECT_FALSE(fits({"a", "a/b"}));
  EXPECT_FALSE(fits({"a/b", "a"}));
  EXPECT_FALSE(parse_manifest(to_text({.name = "a/b", .files = {file("a", 0)}})).ok());
  EXPECT_FALSE(parse_manifest(to_text({.name = "..", .files = {file("a", 0)}})).ok());
}

}  // namespace
}  // namespace motley::blocks

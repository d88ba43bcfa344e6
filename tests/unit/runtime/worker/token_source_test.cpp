#include "runtime/worker/token_source.h"

#include <gtest/gtest.h>

#include "../../store/temporary.h"
#include "store/secret_file.h"

namespace motley::runtime {
namespace {

fleet::JoinToken token_of(std::uint64_t run) {
  fleet::JoinToken token;
  token.addresses = {"127.0.0.1"};
  token.port = 7117;
  token.run = run;
  return token;
}

void write(const std::filesystem::path& path, const std::string& text) {
  ASSERT_TRUE(store::write_secret_file(path, text + "\n"));
}

TEST(TokenSource, SaysWhenThereIsAnotherTokenInIt) {
  const store::test::TemporaryDirectory dir;
  const auto path = dir / "token";
  write(path, fleet::to_text(token_of(1)));
  TokenSource file(path.string(), token_of(1));
  EXPECT_FALSE(file.look());
  write(path, fleet::to_text(token_of(2)));
  EXPECT_TRUE(file.look());
  EXPECT_TRUE(file.changed());
  EXPECT_EQ(file.take(), token_of(2));
  EXPECT_FALSE(file.look()) << "that is the one in use now";
  EXPECT_FALSE(file.take());
}

TEST(TokenSource, WhatIsNoTokenIsNoOtherToken) {
  const store::test::TemporaryDirectory dir;
  const auto path = dir / "token";
  TokenSource file(path.string(), token_of(1));
  EXPECT_FALSE(file.gone()) << "nobody has looked";
  EXPECT_FALSE(file.look()) << "it is not there";
  EXPECT_TRUE(file.gone());
  write(path, "motley1.half");
  EXPECT_FALSE(file.look());
  EXPECT_FALSE(file.gone());
}

TEST(TokenSource, TheOldTokenMayComeBack) {
  const store::test::TemporaryDirectory dir;
  const auto path = dir / "token";
  TokenSource file(path.string(), token_of(1));
  write(path, fleet::to_text(token_of(2)));
  EXPECT_TRUE(file.look());
  write(path, fleet::to_text(token_of(1)));
  EXPECT_FALSE(file.look());
}

}  // namespace
}  // namespace motley::runtime

#include "runtime/worker/pair_with.h"

#include <gtest/gtest.h>

namespace motley::runtime {
namespace {

std::string words_of(const std::string& text) {
  const Result<transport::Endpoint> endpoint = head_endpoint(text);
  return endpoint ? endpoint->host + " " + std::to_string(endpoint->port) : "refused";
}

TEST(PairWith, AHeadIsWhereItSays) {
  EXPECT_EQ(words_of("desktop"), "desktop 7117");
  EXPECT_EQ(words_of("192.168.1.7"), "192.168.1.7 7117");
  EXPECT_EQ(words_of("192.168.1.7:7200"), "192.168.1.7 7200");
  EXPECT_EQ(words_of("fd00::7"), "fd00::7 7117");
  EXPECT_EQ(words_of("[fd00::7]"), "fd00::7 7117");
  EXPECT_EQ(words_of("[fd00::7]:7200"), "fd00::7 7200");
}

TEST(PairWith, WhatIsNoAddressIsRefused) {
  for (const char* text : {"", ":7117", "desktop:", "desktop:0", "desktop:70000", "desktop:x", "[fd00::7", "[fd00::7]x",
                           "[]", "a b", "runs/token"})
    EXPECT_EQ(words_of(text), "refused") << text;
}

TEST(PairWith, WhoDoesNotListenIsNamed) {
  const transport::Endpoint nobody{"127.0.0.1", 1};  // of the system alone, and nothing is there
  const auto token = pair_with(nobody, "123456", "laptop", transport::make_identity());
  ASSERT_FALSE(token);
  EXPECT_EQ(token.error().code, ErrorCode::network);
}

}  // namespace
}  // namespace motley::runtime

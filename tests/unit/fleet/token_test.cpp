#include "fleet/token.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "base/crc32c.h"

namespace motley::fleet {
namespace {

// The examples of docs/formats/token.md, written by the second implementation in tests/conformance/wire_vectors.py.
constexpr std::string_view kFirst =
    "motley1.AIh3ZlVEMyIRAP_"
    "u3cy7qpkA0klrAAAAAAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4foKGio6SlpqeoqaqrrK2urzxzAwsxOTIuMTY4LjEuNwdmZTgwOjoxD"
    "WRlc2t0b3AubG9jYWwe099o";
constexpr std::string_view kSecond =
    "motley1.AYh3ZlVEMyIRAP_"
    "u3cy7qpkAAAAAAAAAAAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4foKGio6SlpqeoqaqrrK2urzxzAQkxMjcuMC4wLjGX0Byp";

JoinToken first() {
  JoinToken token;
  token.addresses = {"192.168.1.7", "fe80::1", "desktop.local"};
  token.port = 29500;
  token.run = 0x1122334455667788;
  token.id = 0x99AABBCCDDEEFF00;
  token.expires_unix_s = 1800000000;
  std::iota(token.spki.begin(), token.spki.end(), std::uint8_t{0});
  std::iota(token.secret.begin(), token.secret.end(), std::uint8_t{160});
  return token;
}

JoinToken second() {
  JoinToken token = first();
  token.addresses = {"127.0.0.1"};
  token.expires_unix_s = 0;
  token.plaintext = true;
  return token;
}

// The error of a text that is not let in. It never repeats the text: that could be a secret.
Error refusal(std::string_view text) {
  const auto token = parse_token(text);
  if (token.ok()) return {ErrorCode::internal, "accepted", ""};
  EXPECT_EQ(token.error().code, ErrorCode::input);
  EXPECT_TRUE(token.error().message.starts_with("join token: ")) << token.error().message;
  EXPECT_FALSE(token.error().hint.empty());
  return token.error();
}

bool says(const Error& error, std::string_view part) { return error.message.find(part) != std::string::npos; }

TEST(Token, TextIsTheOneOfTheSpecification) {
  EXPECT_EQ(to_text(first()), kFirst);
  EXPECT_EQ(to_text(second()), kSecond);
}

TEST(Token, ReadsTheTextOfTheSpecification) {
  const auto one = parse_token(kFirst);
  ASSERT_TRUE(one.ok()) << one.error().message;
  EXPECT_EQ(*one, first());
  const auto two = parse_token(kSecond);
  ASSERT_TRUE(two.ok()) << two.error().message;
  EXPECT_EQ(*two, second());
}

TEST(Token, WhiteSpaceAroundItDoesNotMatter) {
  const auto token = parse_token("\r\n \t" + std::string(kFirst) + " \r\n\n");
  ASSERT_TRUE(token.ok()) << token.error().message;
  EXPECT_EQ(*token, first());
}

TEST(Token, LongestTokenFits) {
  JoinToken token = first();
  token.addresses.assign(JoinToken::kAddressesMax, std::string(JoinToken::kAddressBytesMax, 'a'));
  const std::string text = to_text(token);
  EXPECT_LE(text.size(), JoinToken::kTextBytesMax);
  const auto read = parse_token(text);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, token);
}

// Every character replaced by every other byte, one at a time.
TEST(Token, AnySingleWrongCharacterIsFound) {
  for (const std::string_view good : {kFirst, kSecond}) {
    std::string text(good);
    for (std::size_t at = 0; at < text.size(); ++at) {
      for (int value = 0; value < 256; ++value) {
        text[at] = static_cast<char>(value);
        if (text[at] == good[at]) continue;
        ASSERT_FALSE(parse_token(text).ok()) << "place " << at << " byte " << value;
      }
      text[at] = good[at];
    }
  }
}

TEST(Token, SwappedMissingAndDoubledLettersAreFound) {
  for (std::size_t at = 0; at < kFirst.size(); ++at) {
    std::string missing(kFirst);
    missing.erase(at, 1);
    EXPECT_FALSE(parse_token(missing).ok()) << at;
    std::string doubled(kFirst);
    doubled.insert(at, 1, doubled[at]);
    EXPECT_FALSE(parse_token(doubled).ok()) << at;
    if (at + 1 < kFirst.size() && kFirst[at] != kFirst[at + 1]) {
      std::string swapped(kFirst);
      std::swap(swapped[at], swapped[at + 1]);
      EXPECT_FALSE(parse_token(swapped).ok()) << at;
    }
  }
}

TEST(Token, IsRefusedCutAtAnyLetter) {
  for (std::size_t size = 0; size < kFirst.size(); ++size)
    EXPECT_FALSE(parse_token(kFirst.substr(0, size)).ok()) << size;
}

TEST(Token, DamageAsksForAnotherCopy) {
  std::string text(kFirst);
  text[40] = text[40] == 'A' ? 'B' : 'A';
  Error error = refusal(text);
  EXPECT_TRUE(says(error, "checksum")) << error.message;
  EXPECT_TRUE(error.hint.starts_with("copy it again")) << error.hint;

  text = std::string(kFirst);
  text[40] = '!';
  EXPECT_TRUE(says(refusal(text), "found another character at place 41"));
  text[40] = '\n';
  EXPECT_TRUE(says(refusal(text), "found a space or line break at place 41"));
  EXPECT_TRUE(says(refusal("motley1."), "cut short"));
  EXPECT_TRUE(says(refusal("motley1.AAAA"), "cut short"));
  EXPECT_TRUE(says(refusal("Motley1." + std::string(kFirst.substr(8))), "found capitals"));
  EXPECT_TRUE(says(refusal("motley1." + std::string(3000, 'A')), "expected at most 2048 letters, found 3008"));
}

TEST(Token, NewerVersionSaysSo) {
  const Error error = refusal("motley2.AAAA");
  EXPECT_TRUE(says(error, "expected version 1, found version 2, from a newer motley")) << error.message;
  EXPECT_TRUE(error.hint.starts_with("install the same version"));
  EXPECT_TRUE(says(refusal("motley12.AAAA"), "found version 12"));
}

TEST(Token, OtherTextsAreNamedForWhatTheyAre) {
  const std::pair<std::string, std::string> texts[] = {
      {"", "found nothing"},
      {"  \n", "found nothing"},
      {"192.168.1.7:29500", "an address and a port"},
      {"192.168.1.7", "an address or a host name"},
      {"desktop.local", "an address or a host name"},
      {"https://example.org/token", "a web address"},
      {"run.toml", "a file name"},
      {"join.token", "a file name"},
      {"/home/me/secret", "a path"},
      {"--json", "a command-line flag"},
      {"<TOKEN>", "the placeholder of an example"},
      {"TOKEN", "the placeholder of an example"},
      {"two words", "several words"},
      {"\"" + std::string(kFirst) + "\"", "a token with other words or quotes around it"},
      {"motley join " + std::string(kFirst), "a token with other words or quotes around it"},
      {"{\"event\":\"run\",\"join\":\"" + std::string(kFirst) + "\"}", "a whole JSON line with a token in it"},
      {"{\"event\":\"run\"}", "a line of JSON"},
      {"-----BEGIN PRIVATE KEY-----", "a PEM key"},
      {"fashion-cnn", "something else"},
      {"motley0.AAAA", "an address or a host name"},
      {"motleyX.AAAA", "an address or a host name"},
  };
  for (const auto& [text, part] : texts) {
    const Error error = refusal(text);
    EXPECT_TRUE(says(error, part)) << text << " -> " << error.message;
  }
}

TEST(Token, ErrorsKeepTheSecret) {
  std::string text(kFirst);
  text[100] = text[100] == 'A' ? 'B' : 'A';
  for (const std::string& bad : {text, text.substr(1), "\"" + text, text + "!"}) {
    const Error error = refusal(bad);
    EXPECT_EQ(error.message.find(text.substr(20, 8)), std::string::npos);
    EXPECT_EQ(error.hint.find(text.substr(20, 8)), std::string::npos);
  }
}

TEST(Token, BodiesThatMakeNoSenseAreRefused) {
  JoinToken token = first();
  token.port = 0;
  EXPECT_TRUE(says(refusal(to_text(token)), "expected a port from 1 to 65535"));
  token = first();
  token.addresses.clear();
  EXPECT_TRUE(says(refusal(to_text(token)), "expected 1 to 8 addresses, found 0"));
  token = first();
  token.addresses[1] = "has space";
  EXPECT_TRUE(says(refusal(to_text(token)), "printable letters"));
}

TEST(TokenDeathTest, TooManyAddressesAreABug) {
  JoinToken token = first();
  token.addresses.assign(JoinToken::kAddressesMax + 1, "a");
  EXPECT_DEATH((void)to_text(token), "motley: bug");
}

TEST(Proof, InputIsTheOneOfTheSpecification) {
  std::array<std::uint8_t, 32> exporter{};
  exporter.fill(0xEE);
  std::array<std::uint8_t, 32> joiner{};
  joiner.fill(0x17);
  const JoinToken token = first();
  const auto input = proof_input("join", exporter, token.spki, joiner, token.run, token.id, 1);
  EXPECT_EQ(input.size(), 148U);
  EXPECT_EQ(crc32c(input), 0x51800629U);
}

TEST(Proof, EveryPieceCounts) {
  const std::array<std::uint8_t, 32> a{};
  std::array<std::uint8_t, 32> b{};
  b[31] = 1;
  const auto input = proof_input("join", a, a, a, 1, 2, 3);
  EXPECT_NE(input, proof_input("head", a, a, a, 1, 2, 3));
  EXPECT_NE(input, proof_input("join", b, a, a, 1, 2, 3));
  EXPECT_NE(input, proof_input("join", a, b, a, 1, 2, 3));
  EXPECT_NE(input, proof_input("join", a, a, b, 1, 2, 3));
  EXPECT_NE(input, proof_input("join", a, a, a, 2, 2, 3));
  EXPECT_NE(input, proof_input("join", a, a, a, 1, 3, 3));
  EXPECT_NE(input, proof_input("join", a, a, a, 1, 2, 4));
}

}  // namespace
}  // namespace motley::fleet

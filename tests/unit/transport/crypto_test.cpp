#include "transport/crypto.h"

#include <gtest/gtest.h>

#include "base/little_endian.h"

namespace motley::transport {
namespace {

std::string hex(std::span<const std::uint8_t> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

TEST(Crypto, Sha256KnowsItsVectors) {  // FIPS 180-4
  EXPECT_EQ(sha256_hex({}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex(as_bytes(std::string("abc"))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Crypto, HmacKnowsItsVectors) {  // RFC 4231, test cases 1 and 2
  const std::vector<std::uint8_t> key(20, 0x0b);
  EXPECT_EQ(hex(hmac_sha256(key, as_bytes(std::string("Hi There")))),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  const std::string jefe = "Jefe";
  const std::vector<std::uint8_t> second(jefe.begin(), jefe.end());
  EXPECT_EQ(hex(hmac_sha256(second, as_bytes(std::string("what do ya want for nothing?")))),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(Crypto, HmacTakesEmptyKeyAndMessage) {
  EXPECT_EQ(hex(hmac_sha256({}, {})), "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

TEST(Crypto, ComparesWhole) {
  const std::vector<std::uint8_t> a{1, 2, 3}, b{1, 2, 4}, c{1, 2};
  EXPECT_TRUE(equal_constant_time(a, a));
  EXPECT_FALSE(equal_constant_time(a, b));
  EXPECT_FALSE(equal_constant_time(a, c));
  EXPECT_TRUE(equal_constant_time({}, {}));
}

TEST(Crypto, RandomBytesDiffer) {
  std::array<std::uint8_t, 32> a{}, b{};
  random_bytes(a);
  random_bytes(b);
  EXPECT_NE(a, b);
  random_bytes({});
}

TEST(Crypto, IdentityComesBackFromItsPem) {
  const Identity identity = make_identity();
  EXPECT_TRUE(identity.pem.starts_with("-----BEGIN PRIVATE KEY-----"));
  const auto again = identity_from_pem(identity.pem);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->spki, identity.spki);
  EXPECT_EQ(again->pem, identity.pem);
  EXPECT_NE(make_identity().spki, identity.spki);
}

TEST(Crypto, DamagedPemIsAnInputErrorAtEveryLength) {
  const std::string pem = make_identity().pem;
  const std::size_t last_line = pem.rfind("-----END CERTIFICATE-----") + 24;
  for (std::size_t size = 0; size < last_line; ++size) {
    const auto result = identity_from_pem(pem.substr(0, size));
    ASSERT_FALSE(result.ok()) << size;
    ASSERT_EQ(result.error().code, ErrorCode::input);
    ASSERT_FALSE(result.error().message.empty());
  }
}

TEST(Crypto, KeyAndCertificateMustBelongTogether) {
  const std::string a = make_identity().pem, b = make_identity().pem;
  const std::size_t cut_a = a.find("-----BEGIN CERTIFICATE"), cut_b = b.find("-----BEGIN CERTIFICATE");
  const auto result = identity_from_pem(a.substr(0, cut_a) + b.substr(cut_b));
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("certificate of another key"), std::string::npos);
}

}  // namespace
}  // namespace motley::transport

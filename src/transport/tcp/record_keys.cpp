#include "transport/tcp/record_keys.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <string_view>

#include "base/assert.h"

namespace motley::transport {
namespace {

struct SuiteOfOpenssl {
  const EVP_CIPHER* cipher;
  const EVP_MD* hash;
};

SuiteOfOpenssl suite_of(RecordSuite suite) {
  switch (suite) {
    case RecordSuite::aes_128_gcm:
      return {EVP_aes_128_gcm(), EVP_sha256()};
    case RecordSuite::aes_256_gcm:
      return {EVP_aes_256_gcm(), EVP_sha384()};
    case RecordSuite::chacha20_poly1305:
      return {EVP_chacha20_poly1305(), EVP_sha256()};
  }
  MOTLEY_ASSERT(false);
  return {};
}

/// HKDF-Expand-Label of RFC 8446, 7.1, without a context. REQUIRES `out` is no longer than the hash.
void expand_label(const TrafficSecret& secret, std::string_view label, std::span<std::uint8_t> out) {
  constexpr std::string_view kPrefix = "tls13 ";
  const EVP_MD* hash = suite_of(secret.suite).hash;
  MOTLEY_ASSERT(out.size() <= static_cast<std::size_t>(EVP_MD_get_size(hash)));
  std::array<std::uint8_t, 32> info{};
  std::size_t size = 0;
  info[size++] = 0;
  info[size++] = static_cast<std::uint8_t>(out.size());
  info[size++] = static_cast<std::uint8_t>(kPrefix.size() + label.size());
  for (const std::string_view part : {kPrefix, label})
    for (const char letter : part) info[size++] = static_cast<std::uint8_t>(letter);
  info[size++] = 0;  // no context
  info[size++] = 1;  // the first block of HKDF-Expand, which is enough
  std::array<std::uint8_t, EVP_MAX_MD_SIZE> block{};
  unsigned int block_size = 0;
  MOTLEY_ASSERT(HMAC(hash, secret.bytes.data(), static_cast<int>(secret.size), info.data(), size, block.data(),
                     &block_size) != nullptr);
  std::copy_n(block.begin(), out.size(), out.begin());
  OPENSSL_cleanse(block.data(), block.size());
}

const unsigned char* in_openssl(const std::byte* bytes) { return reinterpret_cast<const unsigned char*>(bytes); }
unsigned char* in_openssl(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }

}  // namespace

TrafficSecret::~TrafficSecret() { OPENSSL_cleanse(bytes.data(), bytes.size()); }

struct RecordKeys::Cipher {
  EVP_CIPHER_CTX* context = EVP_CIPHER_CTX_new();
  Cipher() { MOTLEY_ASSERT(context != nullptr); }
  Cipher(const Cipher&) = delete;
  Cipher& operator=(const Cipher&) = delete;
  ~Cipher() { EVP_CIPHER_CTX_free(context); }
};

RecordKeys::RecordKeys(const TrafficSecret& secret, Use use)
    : cipher_(std::make_unique<Cipher>()), secret_(secret), use_(use) {
  const SuiteOfOpenssl suite = suite_of(secret_.suite);
  MOTLEY_ASSERT(secret_.size == static_cast<std::size_t>(EVP_MD_get_size(suite.hash)));
  MOTLEY_ASSERT(EVP_CipherInit_ex(cipher_->context, suite.cipher, nullptr, nullptr, nullptr, use_ == Use::seal) == 1);
  derive();
}

RecordKeys::~RecordKeys() {
  OPENSSL_cleanse(key_.data(), key_.size());
  OPENSSL_cleanse(iv_.data(), iv_.size());
}

void RecordKeys::derive() {
  const std::size_t size = static_cast<std::size_t>(EVP_CIPHER_CTX_get_key_length(cipher_->context));
  expand_label(secret_, "key", std::span(key_).first(size));
  expand_label(secret_, "iv", iv_);
  MOTLEY_ASSERT(EVP_CipherInit_ex(cipher_->context, nullptr, nullptr, key_.data(), nullptr, -1) == 1);
  records_ = 0;
}

void RecordKeys::renew() {
  TrafficSecret next = secret_;
  expand_label(secret_, "traffic upd", std::span(next.bytes).first(next.size));
  secret_ = next;
  derive();
}

std::span<const std::uint8_t> RecordKeys::key() const noexcept {
  return std::span(key_).first(static_cast<std::size_t>(EVP_CIPHER_CTX_get_key_length(cipher_->context)));
}

void RecordKeys::begin(Header header) {
  std::array<std::uint8_t, 12> nonce = iv_;
  for (std::size_t i = 0; i < 8; ++i) nonce[11 - i] ^= static_cast<std::uint8_t>(records_ >> (8 * i));
  ++records_;
  int count = 0;
  MOTLEY_ASSERT(EVP_CipherInit_ex(cipher_->context, nullptr, nullptr, nullptr, nonce.data(), -1) == 1);
  MOTLEY_ASSERT(EVP_CipherUpdate(cipher_->context, nullptr, &count, in_openssl(header.data()),
                                 static_cast<int>(header.size())) == 1);
}

void RecordKeys::piece(std::span<const std::byte> in, std::byte* out) {
  if (in.empty()) return;
  int count = 0;
  MOTLEY_ASSERT(EVP_CipherUpdate(cipher_->context, in_openssl(out), &count, in_openssl(in.data()),
                                 static_cast<int>(in.size())) == 1);
  MOTLEY_ASSERT(static_cast<std::size_t>(count) == in.size());
}

void RecordKeys::end_sealed(Tag tag) {
  MOTLEY_ASSERT(use_ == Use::seal);
  int count = 0;
  std::array<unsigned char, kTagBytes> nothing{};
  MOTLEY_ASSERT(EVP_CipherFinal_ex(cipher_->context, nothing.data(), &count) == 1 && count == 0);
  MOTLEY_ASSERT(EVP_CIPHER_CTX_ctrl(cipher_->context, EVP_CTRL_AEAD_GET_TAG, kTagBytes, tag.data()) == 1);
}

bool RecordKeys::end_opened(std::span<const std::byte, kTagBytes> tag) {
  MOTLEY_ASSERT(use_ == Use::open);
  std::array<std::byte, kTagBytes> expected{};
  std::ranges::copy(tag, expected.begin());
  int count = 0;
  std::array<unsigned char, kTagBytes> nothing{};
  MOTLEY_ASSERT(EVP_CIPHER_CTX_ctrl(cipher_->context, EVP_CTRL_AEAD_SET_TAG, kTagBytes, expected.data()) == 1);
  return EVP_CipherFinal_ex(cipher_->context, nothing.data(), &count) == 1;
}

}  // namespace motley::transport

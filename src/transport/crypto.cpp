#include "transport/crypto.h"

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#ifdef _WIN32
#include <openssl/rand.h>
#else
#include <unistd.h>
#if __has_include(<sys/random.h>)
#include <sys/random.h>
#endif
#endif

#include <limits>
#include <memory>

#include "base/assert.h"
#include "base/hex.h"
#include "transport/x509.h"

namespace motley::transport {
namespace {

using BioPtr = std::unique_ptr<BIO, Freed<BIO_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using CertificatePtr = std::unique_ptr<X509, Freed<X509_free>>;

constexpr long kDaySeconds = 24L * 60 * 60;

BioPtr reader_of(const std::string& text) {
  MOTLEY_ASSERT(text.size() < std::numeric_limits<int>::max());
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string text_in(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return size > 0 ? std::string(data, static_cast<std::size_t>(size)) : std::string();
}

// Names and dates in it mean nothing: the other side looks at the key alone. A machine whose clock is wrong must not
// be refused for it, hence the widest validity there is.
CertificatePtr self_signed(EVP_PKEY* key) {
  CertificatePtr certificate(X509_new());
  X509* x = certificate.get();
  MOTLEY_ASSERT(x != nullptr);
  std::array<std::uint8_t, 8> serial{};
  random_bytes(serial);
  std::uint64_t number = 0;
  for (const std::uint8_t byte : serial) number = (number << 8) | byte;
  X509_NAME* name = X509_get_subject_name(x);
  const bool ok = X509_set_version(x, 2) == 1 && ASN1_INTEGER_set_uint64(X509_get_serialNumber(x), number >> 1) == 1 &&
                  X509_gmtime_adj(X509_getm_notBefore(x), -kDaySeconds) != nullptr &&
                  ASN1_TIME_set_string(X509_getm_notAfter(x), "99991231235959Z") == 1 &&
                  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("motley"),
                                             -1, -1, 0) == 1 &&
                  X509_set_issuer_name(x, name) == 1 && X509_set_pubkey(x, key) == 1 &&
                  X509_sign(x, key, EVP_sha256()) > 0;
  MOTLEY_ASSERT(ok);
  return certificate;
}

}  // namespace

Digest sha256(std::span<const std::byte> bytes) {
  Digest digest{};
  unsigned int size = 0;
  MOTLEY_ASSERT(EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr) == 1);
  MOTLEY_ASSERT(size == digest.size());
  return digest;
}

std::string sha256_hex(std::span<const std::byte> bytes) { return to_hex(sha256(bytes)); }

Digest hmac_sha256(std::span<const std::uint8_t> key, std::span<const std::byte> message) {
  MOTLEY_ASSERT(key.size() <= std::numeric_limits<int>::max());
  // HMAC() takes a null key as "the key of last time", which it refuses here.
  static constexpr std::uint8_t kNoKey = 0;
  Digest digest{};
  unsigned int size = 0;
  MOTLEY_ASSERT(HMAC(EVP_sha256(), key.empty() ? &kNoKey : key.data(), static_cast<int>(key.size()),
                     reinterpret_cast<const unsigned char*>(message.data()), message.size(), digest.data(),
                     &size) != nullptr);
  MOTLEY_ASSERT(size == digest.size());
  return digest;
}

bool equal_constant_time(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b) noexcept {
  return a.size() == b.size() && (a.empty() || CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0);
}

void random_bytes(std::span<std::uint8_t> out) {
  while (!out.empty()) {
    const std::size_t count = std::min<std::size_t>(out.size(), 256);
#ifdef _WIN32
    MOTLEY_ASSERT(RAND_priv_bytes(out.data(), static_cast<int>(count)) == 1);
#else
    // Not OpenSSL's: a connection may come while the process ends, when that has put its generator away already.
    MOTLEY_ASSERT(getentropy(out.data(), count) == 0);
#endif
    out = out.subspan(count);
  }
}

void wipe(std::span<std::uint8_t> secret) noexcept { OPENSSL_cleanse(secret.data(), secret.size()); }

void wipe(std::string& secret) noexcept {
  OPENSSL_cleanse(secret.data(), secret.size());
  secret.clear();
}

std::uint64_t random_u64() {
  std::array<std::uint8_t, 8> bytes{};
  random_bytes(bytes);
  std::uint64_t value = 0;
  for (const std::uint8_t byte : bytes) value = (value << 8) | byte;
  return value;
}

std::optional<Digest> spki_of(const X509* certificate) {
  unsigned char* der = nullptr;
  const int size = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &der);
  if (size <= 0) return std::nullopt;
  const Digest digest = sha256(std::as_bytes(std::span(der, static_cast<std::size_t>(size))));
  OPENSSL_free(der);
  return digest;
}

Identity make_identity() {
  const KeyPtr key(EVP_EC_gen("P-256"));
  MOTLEY_ASSERT(key != nullptr);
  const CertificatePtr certificate = self_signed(key.get());
  const BioPtr bio(BIO_new(BIO_s_mem()));
  MOTLEY_ASSERT(bio != nullptr);
  MOTLEY_ASSERT(PEM_write_bio_PKCS8PrivateKey(bio.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) == 1);
  MOTLEY_ASSERT(PEM_write_bio_X509(bio.get(), certificate.get()) == 1);
  const std::optional<Digest> spki = spki_of(certificate.get());
  MOTLEY_ASSERT(spki);
  return {text_in(bio.get()), *spki};
}

Result<Identity> identity_from_pem(std::string pem) {
  const auto bad = [](const std::string& what) {
    return Error{ErrorCode::input, "expected a P-256 private key and its certificate as PEM, found " + what,
                 "remove the key file to have a new one made; machines that joined before need a new token then"};
  };
  const BioPtr key_reader = reader_of(pem);
  // No pass phrase is asked for: a null callback would prompt on the terminal.
  const auto no_pass_phrase = [](char*, int, int, void*) { return -1; };
  const KeyPtr key(PEM_read_bio_PrivateKey(key_reader.get(), nullptr, no_pass_phrase, nullptr));
  if (key == nullptr) return bad("no readable private key");
  char group[32] = {};
  if (EVP_PKEY_get_group_name(key.get(), group, sizeof group, nullptr) != 1 ||
      std::string_view(group) != "prime256v1") {
    return bad("a key of another kind");
  }
  const BioPtr certificate_reader = reader_of(pem);
  const CertificatePtr certificate(PEM_read_bio_X509(certificate_reader.get(), nullptr, no_pass_phrase, nullptr));
  if (certificate == nullptr) return bad("no readable certificate");
  if (X509_check_private_key(certificate.get(), key.get()) != 1) return bad("a certificate of another key");
  const std::optional<Digest> spki = spki_of(certificate.get());
  if (!spki) return bad("a certificate without a key");
  return Identity{std::move(pem), *spki};
}

}  // namespace motley::transport

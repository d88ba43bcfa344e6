#include "data/source/sha256.h"

#include <openssl/evp.h>

#include <array>
#include <cstdint>

#include "base/assert.h"
#include "base/format.h"

namespace motley::data {

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  MOTLEY_ASSERT(state_->context != nullptr && EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) == 1);
}

Sha256::~Sha256() = default;

void Sha256::add(std::span<const std::byte> bytes) noexcept {
  MOTLEY_ASSERT(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1);
}

std::string Sha256::finish() {
  std::array<std::uint8_t, 32> digest{};
  MOTLEY_ASSERT(EVP_DigestFinal_ex(state_->context, digest.data(), nullptr) == 1);
  std::string text;
  for (const std::uint8_t byte : digest) text += formatted("%02x", static_cast<unsigned>(byte));
  return text;
}

}  // namespace motley::data

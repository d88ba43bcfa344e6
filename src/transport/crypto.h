#pragma once
// The few cryptographic operations the rest needs, without OpenSSL types.

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "motley/result.h"

namespace motley::transport {

using Digest = std::array<std::uint8_t, 32>;

Digest sha256(std::span<const std::byte> bytes);
std::string sha256_hex(std::span<const std::byte> bytes);
Digest hmac_sha256(std::span<const std::uint8_t> key, std::span<const std::byte> message);
bool equal_constant_time(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b) noexcept;
void random_bytes(std::span<std::uint8_t> out);  // from the operating system's generator; aborts if there is none
std::uint64_t random_u64();                      // likewise
/// In a way that no compiler leaves out.
void wipe(std::span<std::uint8_t> secret) noexcept;
void wipe(std::string& secret) noexcept;

/// A P-256 key with its self-signed certificate, as PEM (key first). What a coordinator keeps in its run directory.
struct Identity {
  std::string pem;
  Digest spki{};
};
Identity make_identity();
Result<Identity> identity_from_pem(std::string pem);

}  // namespace motley::transport

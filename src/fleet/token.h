#pragma once
// The join token: everything a machine needs to find the coordinator, know it, and prove that it was invited.
// Text: "motley1." + base64url(binary body + CRC-32C), so that one wrong letter is found before anything is sent.
// docs/formats/token.md is the specification.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "motley/result.h"

namespace motley::fleet {

struct JoinToken {
  static constexpr std::string_view kPrefix = "motley1.";
  static constexpr std::size_t kAddressesMax = 8;
  static constexpr std::size_t kAddressBytesMax = 180;
  static constexpr std::size_t kTextBytesMax = 2048;
  std::vector<std::string> addresses;  // "192.168.1.7", "fe80::1", "desktop.local"
  std::uint16_t port = 0;
  bool plaintext = false;
  std::uint64_t run = 0;
  std::uint64_t id = 0;                 // token_id of Hello
  std::uint64_t expires_unix_s = 0;     // 0: never
  std::array<std::uint8_t, 32> spki{};  // SHA-256 of the coordinator's public key
  std::array<std::uint8_t, 16> secret{};
  bool operator==(const JoinToken&) const = default;
};

/// REQUIRES at most kAddressesMax addresses of 1 to kAddressBytesMax printable letters each.
std::string to_text(const JoinToken& token);
/// Ignores surrounding white space. Errors: input, saying what is wrong (not a token, damaged, too long, newer
/// version).
Result<JoinToken> parse_token(std::string_view text);

/// The bytes whose HMAC-SHA256 under the secret is Proof::mac (role "join"), ProofReply::mac (role "head") or
/// Attach::mac (role "lane"): role, exporter, both SPKIs, run, token id, protocol version, each length-prefixed.
std::vector<std::byte> proof_input(std::string_view role, const std::array<std::uint8_t, 32>& exporter,
                                   const std::array<std::uint8_t, 32>& spki_head,
                                   const std::array<std::uint8_t, 32>& spki_joiner, std::uint64_t run,
                                   std::uint64_t token_id, std::uint32_t protocol);

}  // namespace motley::fleet

#include "runtime/auth.h"

#include "wire/frame.h"

namespace motley::runtime {
namespace {

/// What every token of a run knows, and no stranger: docs/formats/token.md.
transport::Digest knock_key(const fleet::JoinToken& token) {
  constexpr std::string_view kRole = "motley knock";
  std::vector<std::byte> input;
  for (const char letter : kRole) input.push_back(static_cast<std::byte>(letter));
  for (std::size_t i = 0; i < sizeof token.run; ++i) input.push_back(static_cast<std::byte>(token.run >> (8 * i)));
  for (const std::uint8_t byte : token.spki) input.push_back(static_cast<std::byte>(byte));
  return transport::sha256(input);
}

}  // namespace

std::vector<std::uint8_t> proof_mac(const fleet::JoinToken& token, std::string_view role,
                                    const transport::PeerIdentity& peer, const transport::Digest& own_spki, Side side) {
  const transport::Digest none{};
  const transport::Digest& own = peer.encrypted ? own_spki : none;
  const transport::Digest& head = side == Side::head ? own : peer.spki;
  const transport::Digest& joiner = side == Side::head ? peer.spki : own;
  const std::vector<std::byte> input =
      fleet::proof_input(role, peer.exporter, head, joiner, token.run, token.id, wire::kProtocolVersion);
  const transport::Digest mac = transport::hmac_sha256(token.secret, input);
  return {mac.begin(), mac.end()};
}

bool proof_holds(std::span<const std::uint8_t> mac, const fleet::JoinToken& token, std::string_view role,
                 const transport::PeerIdentity& peer, const transport::Digest& own_spki, Side side) {
  return transport::equal_constant_time(mac, proof_mac(token, role, peer, own_spki, side));
}

transport::TcpOptions tcp_options(const fleet::JoinToken& token, const transport::Identity& own) {
  transport::TcpOptions options;
  options.plaintext = token.plaintext;
  options.identity = own;
  if (!token.plaintext) options.knock = knock_key(token);
  return options;
}

}  // namespace motley::runtime

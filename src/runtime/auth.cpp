#include "runtime/auth.h"

#include "wire/frame.h"

namespace motley::runtime {

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

}  // namespace motley::runtime

#pragma once
// Proving the token's secret over a connection, on both sides. docs/formats/token.md.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "fleet/token.h"
#include "transport/connection.h"
#include "transport/crypto.h"
#include "transport/tcp/tcp.h"

namespace motley::runtime {

enum class Side : std::uint8_t { head, joiner };

/// The MAC for `role` ("join", "head", "lane") over this connection's exporter value and both public keys.
std::vector<std::uint8_t> proof_mac(const fleet::JoinToken& token, std::string_view role,
                                    const transport::PeerIdentity& peer, const transport::Digest& own_spki, Side side);
bool proof_holds(std::span<const std::uint8_t> mac, const fleet::JoinToken& token, std::string_view role,
                 const transport::PeerIdentity& peer, const transport::Digest& own_spki, Side side);

/// Of whoever has the token, to connect, and of the head, to be connected to.
transport::TcpOptions tcp_options(const fleet::JoinToken& token, const transport::Identity& own);

}  // namespace motley::runtime

#pragma once
// Addresses as people write them, and who is at the other end of a socket. Private to transport/.

#include <optional>
#include <string>

#include "transport/tcp/net.h"
#include "transport/tcp/tcp.h"

namespace motley::transport {

/// "192.168.1.7:7001", "[fe80::1]:7001"; an IPv4 address in IPv6 clothes is shown as IPv4.
std::string text_of(const net::ip::tcp::endpoint& endpoint);
std::string text_of(const Endpoint& endpoint);

[[nodiscard]] bool is_local(const Endpoint& endpoint);
/// REQUIRES is_local(). Errors: input (too long, or no such sockets on this system).
Result<SocketAddress> local_address(const Endpoint& endpoint);

[[nodiscard]] std::uint16_t port_of(const SocketAddress& address);  // 0: a local one

struct Peer {
  std::string address;  // for people
  std::string source;   // for limits
  bool same_machine = false;
};
/// Empty when it is gone, or at the other end of a local socket and another user.
std::optional<Peer> peer_of(Socket& socket);

/// Whom limits per source count as one: an IPv4 address, or the /64 network of an IPv6 address, which is what one
/// machine can take addresses from at will.
std::string source_of(const net::ip::address& address);

#ifdef __APPLE__
inline constexpr bool kOnMac = true;
#else
inline constexpr bool kOnMac = false;
#endif

/// "connection refused" and the like, without the category's noise. `on_mac`: which answers so, too, where it forbids a
/// program the local network.
std::string reason_of(const NetError& error, bool on_mac = kOnMac);

/// `address` is the peer's, for people.
Error connection_ended(const std::string& address, const std::string& why);

}  // namespace motley::transport

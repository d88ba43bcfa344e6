#pragma once
// Addresses as people write them. Private to tcp/.

#include <string>

#include "transport/tcp/net.h"
#include "transport/tcp/tcp.h"

namespace motley::transport {

/// "192.168.1.7:7001", "[fe80::1]:7001"; an IPv4 address in IPv6 clothes is shown as IPv4.
std::string text_of(const net::ip::tcp::endpoint& endpoint);
std::string text_of(const Endpoint& endpoint);

/// Whom limits per source count as one: an IPv4 address, or the /64 network of an IPv6 address, which is what one
/// machine can take addresses from at will.
std::string source_of(const net::ip::address& address);

/// "connection refused" and the like, without the category's noise.
std::string reason_of(const NetError& error);

}  // namespace motley::transport

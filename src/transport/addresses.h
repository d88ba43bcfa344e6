#pragma once
// The addresses of this machine that others may reach it by.

#include <string>
#include <vector>

namespace motley::transport {

/// IPv4 first, then global IPv6, without link-local ones; loopback only when there is nothing else.
std::vector<std::string> local_addresses();

/// An interface that is up, and its IPv4 address: others on the same cable or Wi-Fi are reached through it.
struct LocalNetwork {
  std::string interface;
  std::string address, mask, broadcast;  // "192.168.1.7", "255.255.255.0", "192.168.1.255"
  bool operator==(const LocalNetwork&) const = default;
};
/// Without loopback, and without what has two ends only, as tunnels do.
std::vector<LocalNetwork> local_networks();

/// This machine's name, without its domain.
std::string machine_name();

}  // namespace motley::transport

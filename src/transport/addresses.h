#pragma once
// The addresses of this machine that others may reach it by.

#include <string>
#include <vector>

namespace motley::transport {

/// Those of the interface that leads to the rest of the world first; of these and of the others IPv4 before global
/// IPv6, without link-local ones; loopback only when there is nothing else.
std::vector<std::string> local_addresses();

/// This machine's name, without its domain.
std::string machine_name();

}  // namespace motley::transport

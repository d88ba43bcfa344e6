#pragma once
// The addresses of this machine that others may reach it by.

#include <string>
#include <vector>

namespace motley::transport {

/// IPv4 first, then global IPv6, without link-local ones; loopback only when there is nothing else.
std::vector<std::string> local_addresses();

/// This machine's name, without its domain.
std::string machine_name();

}  // namespace motley::transport

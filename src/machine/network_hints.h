#pragma once
// What of this machine's own may keep others of its network from reaching it, and the command that changes it. What
// only an administrator can see is not seen. Any thread.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace motley::machine {

/// The command that has this system's firewall let in connections to the port; nothing where no firewall is known to be
/// on.
std::optional<std::string> firewall_command(std::uint16_t port, const std::filesystem::path& root = "/");

struct NetworkHint {
  std::string found, command;
  bool operator==(const NetworkHint&) const = default;
};
/// A network of its own that a virtual machine has, a VPN that all traffic takes. `addresses`: of this machine.
std::vector<NetworkHint> network_hints(const std::vector<std::string>& addresses,
                                       const std::filesystem::path& root = "/");

}  // namespace motley::machine

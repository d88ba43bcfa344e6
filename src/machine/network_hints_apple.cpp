#ifdef __APPLE__

#include "machine/network_hints.h"

namespace motley::machine {

// Its firewall lets programs in, not ports, and asks for each the first time.
std::optional<std::string> firewall_command(std::uint16_t /*port*/, const std::filesystem::path& /*root*/) {
  return "System Settings, Network, Firewall: allow incoming connections for motley or python3; since macOS 15 also "
         "Privacy & Security, Local Network";
}

std::vector<NetworkHint> network_hints(const std::vector<std::string>& /*addresses*/,
                                       const std::filesystem::path& /*root*/) {
  return {};
}

}  // namespace motley::machine

#endif

#include "machine/network_hints.h"

namespace motley::machine {

std::optional<std::string> firewall_command(std::uint16_t port, const std::filesystem::path& /*root*/) {
  return "as administrator: netsh advfirewall firewall add rule name=motley dir=in action=allow profile=private "
         "protocol=TCP localport=" +
         std::to_string(port);
}

std::vector<NetworkHint> network_hints(const std::vector<std::string>& /*addresses*/,
                                       const std::filesystem::path& /*root*/) {
  return {};
}

}  // namespace motley::machine

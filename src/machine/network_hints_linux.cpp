#ifdef __linux__

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>

#include "machine/network_hints.h"
#include "machine/system.h"

namespace motley::machine {
namespace {

namespace fs = std::filesystem;

// What goes into WSL passes a firewall of its own in Windows, by the number that Microsoft gave to WSL.
constexpr const char* kHyperVFirewall =
    "Set-NetFirewallHyperVVMSetting -Name '{40E0AC32-46A5-438A-A0B2-2B479E8F2E90}' -DefaultInboundAction Allow";

bool has_line(const fs::path& file, std::string_view wanted) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (line == wanted) return true;
  return false;
}

// Through which interface goes what is for no network of this machine's own.
std::string default_interface(const fs::path& root) {
  std::ifstream in(root / "proc/net/route");
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string interface, destination;
    if (words >> interface >> destination && destination == "00000000") return interface;
  }
  return {};
}

bool is_tunnel(std::string_view interface) {
  for (const std::string_view start : {"tun", "wg", "ppp", "tailscale", "utun", "nordlynx", "proton"})
    if (interface.starts_with(start)) return true;
  return false;
}

// 172.16.0.0/12, out of which Windows takes the network that it gives to WSL.
bool is_of_wsl(const std::string& address) {
  if (!address.starts_with("172.")) return false;
  const int second = std::atoi(address.c_str() + 4);
  return second >= 16 && second < 32;
}

}  // namespace

std::optional<std::string> firewall_command(std::uint16_t port, const fs::path& root) {
  const std::string number = std::to_string(port);
  std::error_code ignored;
  if (has_line(root / "etc/ufw/ufw.conf", "ENABLED=yes")) return "sudo ufw allow " + number + "/tcp";
  if (fs::exists(root / "sys/fs/cgroup/system.slice/firewalld.service", ignored) ||
      fs::exists(root / "sys/fs/cgroup/systemd/system.slice/firewalld.service", ignored))
    return "sudo firewall-cmd --add-port=" + number + "/tcp";
  return std::nullopt;
}

std::vector<NetworkHint> network_hints(const std::vector<std::string>& addresses, const fs::path& root) {
  std::vector<NetworkHint> hints;
  if (wsl_version(root) > 0 && !addresses.empty()) {
    const bool apart = std::ranges::all_of(addresses, is_of_wsl);
    const std::string mirrored =
        "in Windows: networkingMode=mirrored below [wsl2] in %UserProfile%\\.wslconfig, then wsl --shutdown; then ";
    hints.push_back({apart ? "this is WSL in a network of its own: other machines do not reach it"
                           : "this is WSL: the Hyper-V firewall of Windows lets no other machine in by itself",
                     "let this machine join and not lead: that needs nothing. To lead, " + (apart ? mirrored : "") +
                         "in PowerShell as administrator: " + kHyperVFirewall});
  }
  const std::string interface = default_interface(root);
  if (is_tunnel(interface)) {
    hints.push_back({"a VPN is on (" + interface + "): many keep machines of the same network apart",
                     "switch it off, or have it allow the local network; machines that are in the same VPN join by a "
                     "token with their address in it (--listen ADDRESS:PORT on the head)"});
  }
  return hints;
}

}  // namespace motley::machine

#endif

#ifdef __linux__

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>

#include "machine/network_hints.h"

namespace motley::machine {
namespace {

namespace fs = std::filesystem;

std::string first_line_of(const fs::path& file) {
  std::string line;
  std::ifstream in(file);
  std::getline(in, line);
  return line;
}

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
  if (has_line(root / "etc/ufw/ufw.conf", "ENABLED=yes"))
    return "sudo ufw allow " + number + "/tcp && sudo ufw allow 5353/udp";
  if (fs::exists(root / "sys/fs/cgroup/system.slice/firewalld.service", ignored) ||
      fs::exists(root / "sys/fs/cgroup/systemd/system.slice/firewalld.service", ignored))
    return "sudo firewall-cmd --add-port=" + number + "/tcp --add-service=mdns";
  return std::nullopt;
}

std::vector<NetworkHint> network_hints(const std::vector<std::string>& addresses, const fs::path& root) {
  std::vector<NetworkHint> hints;
  const bool wsl = first_line_of(root / "proc/sys/kernel/osrelease").find("icrosoft") != std::string::npos;
  if (wsl && !addresses.empty() && std::ranges::all_of(addresses, is_of_wsl)) {
    hints.push_back({"this is WSL in a network of its own: other machines do not reach it",
                     "in Windows: networkingMode=mirrored below [wsl2] in %UserProfile%\\.wslconfig, then wsl "
                     "--shutdown; or let this machine be the one that joins, by a token"});
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

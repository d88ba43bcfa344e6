#include "transport/interface.h"

#include <fstream>

#include "transport/route.h"

namespace motley::transport {

const char* to_word(InterfaceKind kind) noexcept {
  switch (kind) {
    case InterfaceKind::loopback:
      return "loopback";
    case InterfaceKind::cable:
      return "cable";
    case InterfaceKind::wifi:
      return "wifi";
    case InterfaceKind::virtual_:
      return "virtual";
    case InterfaceKind::unknown:
      break;
  }
  return "unknown";
}

Interface read_interface(const std::string& name, const std::filesystem::path& root) {
  namespace fs = std::filesystem;
  constexpr int kEthernet = 1;
  constexpr long kMbitMax = 1'000'000;
  Interface result;
  result.name = name;
  const fs::path place = root / "sys/class/net" / name;
  std::error_code code;
  if (!fs::is_directory(place, code)) return result;
  int type = 0;
  std::ifstream(place / "type") >> type;
  if (fs::exists(place / "wireless", code) || fs::exists(place / "phy80211", code)) {
    result.kind = InterfaceKind::wifi;
    return result;
  }
  if (!fs::exists(place / "device", code)) {
    result.kind = InterfaceKind::virtual_;
    return result;
  }
  if (type == kEthernet) result.kind = InterfaceKind::cable;
  long speed = 0;  // -1, or no number at all, where the driver does not know
  if (std::ifstream(place / "speed") >> speed && speed > 0 && speed <= kMbitMax) {
    result.mbit_per_s = static_cast<std::uint32_t>(speed);
  }
  std::string duplex;
  result.half_duplex = (std::ifstream(place / "duplex") >> duplex) && duplex == "half";
  return result;
}

std::string outward_interface() {
  constexpr const char* kElsewhere = "192.0.2.1";  // nobody's address (RFC 5737), so the way to it is that to anybody
  const Interface found = interface_of_route(kElsewhere, "9");
  return found.kind == InterfaceKind::virtual_ ? "" : found.name;
}

Interface interface_towards(const PeerIdentity& to) {
  if (to.same_machine) return {InterfaceKind::loopback, 0, false, "local socket"};
  const std::string& peer = to.address;
  const std::size_t colon = peer.rfind(':');
  if (colon == std::string::npos) return {};
  std::string host = peer.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  return interface_of_route(host, peer.substr(colon + 1));
}

}  // namespace motley::transport

#include "transport/interface.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <memory>

#ifdef __APPLE__
#include <net/if_media.h>
#include <sys/ioctl.h>
#include <sys/sockio.h>
#endif

namespace motley::transport {
namespace {

bool same_address(const sockaddr& a, const sockaddr& b) {
  if (a.sa_family != b.sa_family) return false;
  if (a.sa_family == AF_INET) {
    return reinterpret_cast<const sockaddr_in&>(a).sin_addr.s_addr ==
           reinterpret_cast<const sockaddr_in&>(b).sin_addr.s_addr;
  }
  return a.sa_family == AF_INET6 &&
         std::memcmp(&reinterpret_cast<const sockaddr_in6&>(a).sin6_addr,
                     &reinterpret_cast<const sockaddr_in6&>(b).sin6_addr, sizeof(in6_addr)) == 0;
}

/// Empty when none has it.
std::string interface_with(const sockaddr& address) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return "";
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr != nullptr && same_address(*entry->ifa_addr, address)) return entry->ifa_name;
  }
  return "";
}

/// Which of its interfaces the system would send from: a datagram socket is connected, nothing is sent.
std::string route_to(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) return "";
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  const int probe = ::socket(found->ai_family, SOCK_DGRAM, 0);
  if (probe < 0) return "";
  sockaddr_storage local{};
  socklen_t size = sizeof local;
  auto* generic = reinterpret_cast<sockaddr*>(&local);
  const bool routed =
      ::connect(probe, found->ai_addr, found->ai_addrlen) == 0 && ::getsockname(probe, generic, &size) == 0;
  ::close(probe);
  return routed ? interface_with(*generic) : "";
}

#ifdef __APPLE__

std::uint32_t speed_of(int media) {
  switch (IFM_SUBTYPE(media)) {
    case IFM_10_T:
      return 10;
    case IFM_100_TX:
      return 100;
    case IFM_1000_T:
      return 1000;
#ifdef IFM_2500_T
    case IFM_2500_T:
      return 2500;
#endif
#ifdef IFM_5000_T
    case IFM_5000_T:
      return 5000;
#endif
#ifdef IFM_10G_T
    case IFM_10G_T:
      return 10000;
#endif
    default:
      return 0;
  }
}

Interface ask_system(const std::string& name) {
  Interface result;
  result.name = name;
  const int probe = ::socket(AF_INET, SOCK_DGRAM, 0);
  if (probe < 0) return result;
  ifmediareq request{};
  std::strncpy(request.ifm_name, name.c_str(), sizeof request.ifm_name - 1);
  if (::ioctl(probe, SIOCGIFMEDIA, &request) == 0) {
    const int media = request.ifm_active;
    if (IFM_TYPE(media) == IFM_IEEE80211) result.kind = InterfaceKind::wifi;
    if (IFM_TYPE(media) == IFM_ETHER) {
      result.kind = InterfaceKind::cable;
      result.mbit_per_s = speed_of(media);
      result.half_duplex = (media & IFM_HDX) != 0;
    }
  }
  ::close(probe);
  return result;
}

#else

Interface ask_system(const std::string& name) { return read_interface(name); }

#endif

}  // namespace

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
  if (fs::exists(place / "wireless", code) || fs::exists(place / "phy80211", code)) {
    result.kind = InterfaceKind::wifi;
    return result;
  }
  if (!fs::exists(place / "device", code)) {
    result.kind = InterfaceKind::virtual_;
    return result;
  }
  int type = 0;
  if (std::ifstream(place / "type") >> type && type == kEthernet) result.kind = InterfaceKind::cable;
  long speed = 0;  // -1, or no number at all, where the driver does not know
  if (std::ifstream(place / "speed") >> speed && speed > 0 && speed <= kMbitMax) {
    result.mbit_per_s = static_cast<std::uint32_t>(speed);
  }
  std::string duplex;
  result.half_duplex = (std::ifstream(place / "duplex") >> duplex) && duplex == "half";
  return result;
}

Interface interface_towards(const PeerIdentity& to) {
  if (to.same_machine) return {InterfaceKind::loopback, 0, false, "local socket"};
  const std::string& peer = to.address;
  const std::size_t colon = peer.rfind(':');
  if (colon == std::string::npos) return {};
  std::string host = peer.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  const std::string name = route_to(host, peer.substr(colon + 1));
  if (name.empty()) return {};
  if (name == "lo" || name == "lo0") return {InterfaceKind::loopback, 0, false, name};
  return ask_system(name);
}

}  // namespace motley::transport

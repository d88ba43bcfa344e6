#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <memory>

#ifdef __APPLE__
#include <net/if_media.h>
#include <sys/ioctl.h>
#include <sys/sockio.h>
#endif

#include "transport/route.h"

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

Interface interface_of_route(const std::string& host, const std::string& port) {
  const std::string name = route_to(host, port);
  if (name.empty()) return {};
  if (name == "lo" || name == "lo0") return {InterfaceKind::loopback, 0, false, name};
  return ask_system(name);
}

}  // namespace motley::transport

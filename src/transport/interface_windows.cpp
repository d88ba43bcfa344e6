#include <cstring>
#include <memory>

#include "transport/route.h"
#include "transport/windows_sockets.h"

namespace motley::transport {
namespace {

Interface described(const IP_ADAPTER_ADDRESSES& adapter) {
  constexpr std::uint64_t kBitsPerMbit = 1'000'000;
  constexpr std::uint64_t kMbitMax = 1'000'000;
  Interface result;
  result.name = name_of(adapter);
  switch (adapter.IfType) {
    case IF_TYPE_SOFTWARE_LOOPBACK:
      result.kind = InterfaceKind::loopback;
      break;
    case IF_TYPE_IEEE80211:
      result.kind = InterfaceKind::wifi;
      break;
    case IF_TYPE_ETHERNET_CSMACD: {
      result.kind = InterfaceKind::cable;
      const std::uint64_t mbit_per_s = adapter.TransmitLinkSpeed / kBitsPerMbit;  // all ones where nobody knows
      if (mbit_per_s <= kMbitMax) result.mbit_per_s = static_cast<std::uint32_t>(mbit_per_s);
      break;
    }
    case IF_TYPE_PROP_VIRTUAL:
    case IF_TYPE_TUNNEL:
    case IF_TYPE_PPP:
      result.kind = InterfaceKind::virtual_;
      break;
    default:
      break;
  }
  return result;
}

// The system's choice of an interface is about routes, which these have none of.
bool is_loopback(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return ::ntohl(v4.sin_addr.s_addr) >> 24 == 127;
  }
  return address.sa_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

}  // namespace

Interface interface_of_route(const std::string& host, const std::string& port) {
  const WindowsSockets sockets;
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) return {};
  const std::unique_ptr<addrinfo, void(WSAAPI*)(addrinfo*)> owner(found, ::freeaddrinfo);
  if (is_loopback(*found->ai_addr)) return {InterfaceKind::loopback, 0, false, "loopback"};
  DWORD best = 0;
  if (::GetBestInterfaceEx(found->ai_addr, &best) != NO_ERROR) return {};
  std::vector<std::byte> memory;
  for (const auto* adapter = adapters(memory); adapter != nullptr; adapter = adapter->Next)
    if (adapter->IfIndex == best || adapter->Ipv6IfIndex == best) return described(*adapter);
  return {};
}

}  // namespace motley::transport

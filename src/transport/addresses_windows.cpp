#include <array>
#include <cstdint>

#include "transport/addresses.h"
#include "transport/route.h"
#include "transport/windows_sockets.h"

namespace motley::transport {
namespace {

std::string numeric(int family, const void* address) {
  std::array<char, INET6_ADDRSTRLEN> buffer{};
  return ::inet_ntop(family, address, buffer.data(), buffer.size()) != nullptr ? std::string(buffer.data())
                                                                               : std::string();
}

}  // namespace

std::string name_of(const IP_ADAPTER_ADDRESSES& adapter) {
  std::string name;
  for (const wchar_t* c = adapter.FriendlyName; c != nullptr && *c != 0; ++c)
    name += *c < 0x80 ? static_cast<char>(*c) : '?';  // shown to people, where not every terminal has more
  return name;
}

const IP_ADAPTER_ADDRESSES* adapters(std::vector<std::byte>& memory) {
  constexpr ULONG kWithout = GAA_FLAG_SKIP_ANYCAST | GAA_FLAG_SKIP_MULTICAST | GAA_FLAG_SKIP_DNS_SERVER;
  constexpr std::size_t kBytesMax = std::size_t{1} << 20;
  ULONG size = 16 << 10;
  for (ULONG result = ERROR_BUFFER_OVERFLOW; result == ERROR_BUFFER_OVERFLOW && size <= kBytesMax;) {
    memory.resize(size);
    auto* first = reinterpret_cast<IP_ADAPTER_ADDRESSES*>(memory.data());
    result = ::GetAdaptersAddresses(AF_UNSPEC, kWithout, nullptr, first, &size);
    if (result == NO_ERROR) return first;
  }
  return nullptr;
}

std::vector<std::string> local_addresses() {
  const WindowsSockets sockets;
  const std::string outwards = outward_interface();
  std::vector<std::string> first, v4, v6;  // `first`: IPv4 of that interface
  std::vector<std::byte> memory;
  for (const auto* adapter = adapters(memory); adapter != nullptr; adapter = adapter->Next) {
    if (adapter->OperStatus != IfOperStatusUp || adapter->IfType == IF_TYPE_SOFTWARE_LOOPBACK) continue;
    for (const auto* unicast = adapter->FirstUnicastAddress; unicast != nullptr; unicast = unicast->Next) {
      const sockaddr* generic = unicast->Address.lpSockaddr;
      if (generic->sa_family == AF_INET) {
        (outwards == name_of(*adapter) ? first : v4)
            .push_back(numeric(AF_INET, &reinterpret_cast<const sockaddr_in*>(generic)->sin_addr));
      } else if (generic->sa_family == AF_INET6) {
        const in6_addr& address = reinterpret_cast<const sockaddr_in6*>(generic)->sin6_addr;
        if (IN6_IS_ADDR_LINKLOCAL(&address) == 0) v6.push_back(numeric(AF_INET6, &address));
      }
    }
  }
  first.insert(first.end(), v4.begin(), v4.end());
  first.insert(first.end(), v6.begin(), v6.end());
  if (first.empty()) first.emplace_back("127.0.0.1");
  return first;
}

std::string machine_name() {
  const WindowsSockets sockets;
  std::array<char, 256> buffer{};
  if (::gethostname(buffer.data(), static_cast<int>(buffer.size() - 1)) != 0) return "machine";
  const std::string name(buffer.data());
  return name.substr(0, name.find('.'));
}

}  // namespace motley::transport

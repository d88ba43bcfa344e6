#include "transport/addresses.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

#include <array>
#include <memory>

namespace motley::transport {
namespace {

std::string numeric(int family, const void* address) {
  std::array<char, INET6_ADDRSTRLEN> buffer{};
  return inet_ntop(family, address, buffer.data(), buffer.size()) != nullptr ? std::string(buffer.data())
                                                                             : std::string();
}

}  // namespace

std::vector<std::string> local_addresses() {
  std::vector<std::string> v4;
  std::vector<std::string> v6;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) == 0) {
    const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
    for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
      if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0 || (entry->ifa_flags & IFF_LOOPBACK) != 0)
        continue;
      if (entry->ifa_addr->sa_family == AF_INET) {
        v4.push_back(numeric(AF_INET, &reinterpret_cast<const sockaddr_in*>(entry->ifa_addr)->sin_addr));
      } else if (entry->ifa_addr->sa_family == AF_INET6) {
        const in6_addr& address = reinterpret_cast<const sockaddr_in6*>(entry->ifa_addr)->sin6_addr;
        if (!IN6_IS_ADDR_LINKLOCAL(&address)) v6.push_back(numeric(AF_INET6, &address));
      }
    }
  }
  v4.insert(v4.end(), v6.begin(), v6.end());
  if (v4.empty()) v4.emplace_back("127.0.0.1");
  return v4;
}

std::vector<LocalNetwork> local_networks() {
  std::vector<LocalNetwork> networks;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return networks;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  const auto v4 = [](const sockaddr* address) { return &reinterpret_cast<const sockaddr_in*>(address)->sin_addr; };
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    constexpr unsigned kWanted = IFF_UP | IFF_BROADCAST;
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET || entry->ifa_netmask == nullptr) continue;
    if ((entry->ifa_flags & (kWanted | IFF_LOOPBACK)) != kWanted) continue;
    in_addr broadcast{};
    broadcast.s_addr = v4(entry->ifa_addr)->s_addr | ~v4(entry->ifa_netmask)->s_addr;
    networks.push_back({entry->ifa_name, numeric(AF_INET, v4(entry->ifa_addr)),
                        numeric(AF_INET, v4(entry->ifa_netmask)), numeric(AF_INET, &broadcast)});
  }
  return networks;
}

std::string machine_name() {
  std::array<char, 256> buffer{};
  if (gethostname(buffer.data(), buffer.size() - 1) != 0) return "machine";
  const std::string name(buffer.data());
  return name.substr(0, name.find('.'));
}

}  // namespace motley::transport

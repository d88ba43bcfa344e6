#include "transport/addresses.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

#include <array>
#include <memory>

#include "transport/route.h"

namespace motley::transport {
namespace {

std::string numeric(int family, const void* address) {
  std::array<char, INET6_ADDRSTRLEN> buffer{};
  return inet_ntop(family, address, buffer.data(), buffer.size()) != nullptr ? std::string(buffer.data())
                                                                             : std::string();
}

}  // namespace

std::vector<std::string> local_addresses() {
  const std::string outwards = outward_interface();
  std::vector<std::string> first, v4, v6;  // `first`: IPv4 of that interface
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) == 0) {
    const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
    for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
      if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0 || (entry->ifa_flags & IFF_LOOPBACK) != 0)
        continue;
      if (entry->ifa_addr->sa_family == AF_INET) {
        (outwards == entry->ifa_name ? first : v4)
            .push_back(numeric(AF_INET, &reinterpret_cast<const sockaddr_in*>(entry->ifa_addr)->sin_addr));
      } else if (entry->ifa_addr->sa_family == AF_INET6) {
        const in6_addr& address = reinterpret_cast<const sockaddr_in6*>(entry->ifa_addr)->sin6_addr;
        if (!IN6_IS_ADDR_LINKLOCAL(&address)) v6.push_back(numeric(AF_INET6, &address));
      }
    }
  }
  first.insert(first.end(), v4.begin(), v4.end());
  first.insert(first.end(), v6.begin(), v6.end());
  if (first.empty()) first.emplace_back("127.0.0.1");
  return first;
}

std::string machine_name() {
  std::array<char, 256> buffer{};
  if (gethostname(buffer.data(), buffer.size() - 1) != 0) return "machine";
  const std::string name(buffer.data());
  return name.substr(0, name.find('.'));
}

}  // namespace motley::transport

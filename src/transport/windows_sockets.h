#pragma once
// Windows' sockets for what Asio does not do. Internal to transport/. Any thread.

#include <winsock2.h>
#include <ws2tcpip.h>
// After them.
#include <iphlpapi.h>

#include <cstddef>
#include <string>
#include <vector>

namespace motley::transport {

/// As long as one lives, this process may call the functions of sockets.
class WindowsSockets {
 public:
  WindowsSockets() noexcept {
    WSADATA about{};
    static_cast<void>(::WSAStartup(MAKEWORD(2, 2), &about));
  }
  ~WindowsSockets() { ::WSACleanup(); }
  WindowsSockets(const WindowsSockets&) = delete;
  WindowsSockets& operator=(const WindowsSockets&) = delete;
};

/// All interfaces with their addresses, as a list that begins in `memory`; null where the system does not tell.
const IP_ADAPTER_ADDRESSES* adapters(std::vector<std::byte>& memory);
/// As its user knows it.
std::string name_of(const IP_ADAPTER_ADDRESSES& adapter);

}  // namespace motley::transport

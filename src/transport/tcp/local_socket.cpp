#include "transport/tcp/local_socket.h"

#include "transport/tcp/address.h"

// The abstract namespace, which Linux alone has: nothing to remove after a crash, and each network namespace has its
// own.
#ifdef __linux__
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#endif

namespace motley::transport {

#ifdef __linux__

bool is_local(const SocketAddress& address) { return address.protocol().family() == AF_UNIX; }

bool same_user(Socket& socket) {
  ucred other{};
  socklen_t size = sizeof other;
  if (::getsockopt(socket.native_handle(), SOL_SOCKET, SO_PEERCRED, &other, &size) != 0) return false;
  return other.uid == ::geteuid();
}

Result<SocketAddress> local_address(const Endpoint& endpoint) {
  if (endpoint.host.size() > sizeof(sockaddr_un::sun_path)) {
    return Error{ErrorCode::input,
                 "expected a local name of at most " + std::to_string(sizeof(sockaddr_un::sun_path) - 1) +
                     " letters, found \"" + endpoint.host + "\"",
                 ""};
  }
  std::string path = endpoint.host;
  path.front() = '\0';
  return SocketAddress(net::local::stream_protocol::endpoint(path));
}

#else

bool is_local(const SocketAddress& /*address*/) { return false; }

bool same_user(Socket& /*socket*/) { return false; }

Result<SocketAddress> local_address(const Endpoint& endpoint) {
  return Error{ErrorCode::input, endpoint.host + ": this system has no local names", ""};
}

#endif

}  // namespace motley::transport

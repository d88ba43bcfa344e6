#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loopback.h"

namespace motley::bench {

std::optional<std::pair<int, int>> connect_loopback() {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  bool good = listener >= 0 && ::bind(listener, generic, size) == 0 && ::listen(listener, 1) == 0;
  good = good && ::getsockname(listener, generic, &size) == 0;
  const int near = good ? ::socket(AF_INET, SOCK_STREAM, 0) : -1;
  good = good && near >= 0 && ::connect(near, generic, size) == 0;
  const int far = good ? ::accept(listener, nullptr, nullptr) : -1;
  if (listener >= 0) ::close(listener);
  if (far >= 0) return std::pair(near, far);
  if (near >= 0) ::close(near);
  return std::nullopt;
}

long send_some(int socket, const char* data, std::size_t size) { return ::send(socket, data, size, 0); }

long receive_some(int socket, char* data, std::size_t size) { return ::recv(socket, data, size, 0); }

void close_socket(int socket) { ::close(socket); }

}  // namespace motley::bench

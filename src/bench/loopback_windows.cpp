#include <winsock2.h>
// After it.
#include <ws2tcpip.h>

#include <algorithm>

#include "bench/loopback.h"

namespace motley::bench {
namespace {

constexpr std::size_t kPieceBytesMax = std::size_t{1} << 30;  // the system counts in int

SOCKET handle_of(int socket) { return static_cast<SOCKET>(socket); }

int piece_of(std::size_t size) { return static_cast<int>(std::min(size, kPieceBytesMax)); }

}  // namespace

// Handles fit into an int, which is what OpenSSL takes them as, too.
std::optional<std::pair<int, int>> connect_loopback() {
  static const int started = [] {
    WSADATA about{};
    return ::WSAStartup(MAKEWORD(2, 2), &about);
  }();
  if (started != 0) return std::nullopt;
  const SOCKET listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  int size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  bool good = listener != INVALID_SOCKET && ::bind(listener, generic, size) == 0 && ::listen(listener, 1) == 0;
  good = good && ::getsockname(listener, generic, &size) == 0;
  const SOCKET near_end = good ? ::socket(AF_INET, SOCK_STREAM, 0) : INVALID_SOCKET;
  good = good && near_end != INVALID_SOCKET && ::connect(near_end, generic, size) == 0;
  const SOCKET far_end = good ? ::accept(listener, nullptr, nullptr) : INVALID_SOCKET;
  if (listener != INVALID_SOCKET) ::closesocket(listener);
  if (far_end != INVALID_SOCKET) return std::pair(static_cast<int>(near_end), static_cast<int>(far_end));
  if (near_end != INVALID_SOCKET) ::closesocket(near_end);
  return std::nullopt;
}

long send_some(int socket, const char* data, std::size_t size) {
  return ::send(handle_of(socket), data, piece_of(size), 0);
}

long receive_some(int socket, char* data, std::size_t size) {
  return ::recv(handle_of(socket), data, piece_of(size), 0);
}

void close_socket(int socket) { ::closesocket(handle_of(socket)); }

}  // namespace motley::bench

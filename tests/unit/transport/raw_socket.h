#pragma once
// The system's own sockets, called alike on every system. What waits does so for a bounded time.

#ifdef _WIN32
#include <winsock2.h>
// After it.
#include <ws2tcpip.h>
#else
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>

namespace motley::transport::raw {

inline constexpr int kPatienceSeconds = 20;

#ifdef _WIN32
using Handle = SOCKET;
using Size = int;  // of what moves at once
inline constexpr int kSendFlags = 0, kSendSide = SD_SEND;
inline void shut(int socket) { ::closesocket(static_cast<Handle>(socket)); }
inline bool timed_out() { return ::WSAGetLastError() == WSAETIMEDOUT; }
/// Sockets that a process may have.
inline std::size_t sockets_max() { return 16'000'000; }
#else
using Handle = int;
using Size = std::size_t;
inline constexpr int kSendFlags = MSG_NOSIGNAL, kSendSide = SHUT_WR;
inline void shut(int socket) { ::close(socket); }
inline bool timed_out() { return errno == EAGAIN || errno == EWOULDBLOCK; }
inline std::size_t sockets_max() {
  rlimit files{};
  return ::getrlimit(RLIMIT_NOFILE, &files) == 0 ? files.rlim_cur : 0;
}
#endif

inline Handle handle_of(int socket) { return static_cast<Handle>(socket); }

inline Size size_of(std::size_t bytes) { return static_cast<Size>(std::min<std::size_t>(bytes, 1 << 30)); }

template <class Value>
void set_option(int socket, int name, const Value& value) {
  ::setsockopt(handle_of(socket), SOL_SOCKET, name, reinterpret_cast<const char*>(&value), sizeof value);
}

inline void be_patient(int socket) {
#ifdef _WIN32
  const DWORD patience = kPatienceSeconds * 1000;
#else
  const timeval patience{kPatienceSeconds, 0};
#endif
  set_option(socket, SO_RCVTIMEO, patience);
  set_option(socket, SO_SNDTIMEO, patience);
}

inline int open_socket() { return static_cast<int>(::socket(AF_INET, SOCK_STREAM, 0)); }

/// Not positive where it did not go, or come.
inline long send(int socket, std::span<const std::byte> bytes) {
  return ::send(handle_of(socket), reinterpret_cast<const char*>(bytes.data()), size_of(bytes.size()), kSendFlags);
}
inline long receive(int socket, std::span<std::byte> bytes) {
  return ::recv(handle_of(socket), reinterpret_cast<char*>(bytes.data()), size_of(bytes.size()), 0);
}

inline sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

}  // namespace motley::transport::raw

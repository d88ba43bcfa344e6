#pragma once
// Blocking sockets of the system's own. A socket belongs to one thread at a time.

#include <cstddef>
#include <optional>
#include <utility>

namespace motley::bench {

/// Two connected TCP sockets on loopback; nothing where the system has none.
std::optional<std::pair<int, int>> connect_loopback();
/// How much of it went; not positive where the connection is broken.
long send_some(int socket, const char* data, std::size_t size);
long receive_some(int socket, char* data, std::size_t size);
void close_socket(int socket);

}  // namespace motley::bench

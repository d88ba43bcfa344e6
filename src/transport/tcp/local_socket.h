#pragma once
// Sockets between processes of one user on this machine, by name. Private to tcp/.

#include "transport/tcp/net.h"

namespace motley::transport {

[[nodiscard]] bool is_local(const SocketAddress& address);
/// Whether the process at the other end is this user's. REQUIRES is_local() of its address.
[[nodiscard]] bool same_user(Socket& socket);

}  // namespace motley::transport

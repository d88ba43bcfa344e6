// Nothing is forked there, and sockets of Asio's are not for processes that are started.
#include "transport/tcp/not_inherited.h"

namespace motley::transport {

void NotInherited::hold(Socket::native_handle_type) {}
void NotInherited::release(const std::function<void()>& close) {
  if (close) close();
}

}  // namespace motley::transport

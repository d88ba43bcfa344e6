#pragma once
// Sockets that processes which are forked or started from this one do not keep: they would hold a port or a connection
// open that this process has closed, or that ended with it. One that is forked while a socket is being made keeps that.
// Any thread. Private to tcp/.

#include <functional>

#include "transport/tcp/net.h"

namespace motley::transport {

class NotInherited {
 public:
  NotInherited() = default;
  explicit NotInherited(Socket::native_handle_type handle) { hold(handle); }
  ~NotInherited() { release({}); }
  NotInherited(const NotInherited&) = delete;
  NotInherited& operator=(const NotInherited&) = delete;

  /// REQUIRES that it holds none.
  void hold(Socket::native_handle_type handle);
  /// Calls close(), if there is one, while nothing is forked. It holds none from then on.
  void release(const std::function<void()>& close);

#ifndef _WIN32
 private:
  struct All;
  NotInherited* before_ = nullptr;
  NotInherited* after_ = nullptr;
  Socket::native_handle_type handle_ = -1;
#endif
};

}  // namespace motley::transport

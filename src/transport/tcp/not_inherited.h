#pragma once
// Sockets that processes which are forked or started from this one do not keep: they would hold a port or a connection
// open that this process has closed, or that ended with it. Any thread. Private to tcp/.

#include "transport/tcp/net.h"

namespace motley::transport {

class NotInherited {
 public:
  NotInherited() = default;
  explicit NotInherited(Socket::native_handle_type handle) { hold(handle); }
  ~NotInherited() { release(); }
  NotInherited(const NotInherited&) = delete;
  NotInherited& operator=(const NotInherited&) = delete;

  /// REQUIRES that it holds none.
  void hold(Socket::native_handle_type handle);
  /// Before the handle is closed; nothing where it holds none.
  void release() noexcept;

#ifndef _WIN32
 private:
  struct All;
  NotInherited* before_ = nullptr;
  NotInherited* after_ = nullptr;
  Socket::native_handle_type handle_ = -1;
#endif
};

}  // namespace motley::transport

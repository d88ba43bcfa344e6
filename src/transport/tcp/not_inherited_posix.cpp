#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <mutex>

#include "base/assert.h"
#include "transport/tcp/not_inherited.h"

namespace motley::transport {

/// A process has one list, as it has one table of descriptors. Fork waits until nobody changes it.
struct NotInherited::All {
  static std::mutex mutex;
  static NotInherited* first;

  static void before_fork() { mutex.lock(); }
  static void in_parent() { mutex.unlock(); }
  /// The descriptors stay taken: what the copies of this process's objects may still close is nobody else's.
  static void in_child() {
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (const NotInherited* each = first; each != nullptr; each = each->after_) {
      if (nothing < 0) {
        close(each->handle_);
      } else {
        dup2(nothing, each->handle_);
      }
    }
    if (nothing >= 0) close(nothing);
    mutex.unlock();
  }
};

std::mutex NotInherited::All::mutex;
NotInherited* NotInherited::All::first = nullptr;

void NotInherited::hold(Socket::native_handle_type handle) {
  MOTLEY_ASSERT(handle_ < 0);
  static const int hooked = pthread_atfork(All::before_fork, All::in_parent, All::in_child);
  MOTLEY_ASSERT(hooked == 0);
  if (handle < 0) return;
  static_cast<void>(fcntl(handle, F_SETFD, FD_CLOEXEC));
  const std::lock_guard lock(All::mutex);
  handle_ = handle;
  after_ = All::first;
  if (after_ != nullptr) after_->before_ = this;
  All::first = this;
}

void NotInherited::release(const std::function<void()>& close) {
  const std::lock_guard lock(All::mutex);
  if (close) close();
  if (handle_ < 0) return;
  (before_ != nullptr ? before_->after_ : All::first) = after_;
  if (after_ != nullptr) after_->before_ = before_;
  before_ = after_ = nullptr;
  handle_ = -1;
}

}  // namespace motley::transport

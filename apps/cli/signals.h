#pragma once
// SIGINT and SIGTERM on a thread of their own: the first asks to stop, the second ends the process at once.

#include <signal.h>

#include <functional>
#include <thread>

namespace motley::cli {

class SignalThread {
 public:
  /// Blocks the signals in this thread and all it starts, until it ends: make one before any other thread.
  explicit SignalThread(std::function<void()> first);
  ~SignalThread();
  SignalThread(const SignalThread&) = delete;
  SignalThread& operator=(const SignalThread&) = delete;

 private:
  sigset_t before_{};
  std::thread thread_;
};

}  // namespace motley::cli

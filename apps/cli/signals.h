#pragma once
// SIGINT and SIGTERM (on Windows Ctrl-C and the end of a console) on a thread of their own: the first asks to stop, the
// second ends the process at once.

#include <functional>
#include <memory>

namespace motley::cli {

class SignalThread {
 public:
  /// Blocks the signals in this thread and all it starts, until it ends: make one before any other thread, and one at a
  /// time.
  explicit SignalThread(std::function<void()> first);
  ~SignalThread();
  SignalThread(const SignalThread&) = delete;
  SignalThread& operator=(const SignalThread&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace motley::cli

#pragma once
// A thread with a queue of closures and a regular tick: the only kind of thread that touches an engine. post() may be
// called from anywhere; everything posted runs on the mailbox's thread in order.

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/time.h"

namespace motley::runtime {

/// Monotonic time since the program started.
Time now();

/// How often hosts look at the clock when nothing happens.
constexpr Duration kTick = std::chrono::milliseconds(50);

class Mailbox {
 public:
  Mailbox() = default;
  ~Mailbox() { stop(); }
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  /// Starts the thread; `tick` runs at least every `interval`. `name`: as in base/thread_name.h.
  void start(const char* name, std::function<void()> tick, Duration interval);
  void post(std::function<void()> work);
  /// Runs what is queued, then ends the thread. Not from the thread itself.
  void stop();

 private:
  void loop();

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<std::function<void()>> queue_;
  bool stopping_ = false;
  std::function<void()> tick_;
  Duration interval_{};
  std::thread thread_;
};

}  // namespace motley::runtime

#pragma once
// Ctrl-C as a value: whoever catches it calls request(), whoever runs something registers what to do.

#include <functional>
#include <mutex>
#include <utility>

namespace motley::runtime {

class StopSource {
 public:
  /// Runs the handler (on the caller's thread). A request before on_request() is kept.
  void request() {
    const std::lock_guard lock(mutex_);
    requested_ = true;
    if (handler_) handler_();
  }
  void on_request(std::function<void()> handler) {
    const std::lock_guard lock(mutex_);
    handler_ = std::move(handler);
    if (requested_ && handler_) handler_();
  }
  [[nodiscard]] bool requested() const {
    const std::lock_guard lock(mutex_);
    return requested_;
  }

 private:
  mutable std::mutex mutex_;
  bool requested_ = false;
  std::function<void()> handler_;
};

}  // namespace motley::runtime

#pragma once
// What a connection brought and nobody has looked at yet, in bytes: beyond a limit it is not read any further until
// half of that is left, so that no other machine can fill this one's memory faster than it is answered. Thread-safe.

#include <cstddef>
#include <functional>
#include <mutex>

namespace motley::runtime {

class Backlog {
 public:
  /// `set_reading` is called with false and true in turn, under a lock: it must return quickly.
  Backlog(std::size_t bytes_max, std::function<void(bool)> set_reading)
      : bytes_max_(bytes_max), set_reading_(std::move(set_reading)) {}

  void arrived(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    bytes_ += bytes;
    if (bytes_ <= bytes_max_ || held_) return;
    held_ = true;
    set_reading_(false);
  }
  void done(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    bytes_ -= bytes;
    if (bytes_ > bytes_max_ / 2 || !held_) return;
    held_ = false;
    set_reading_(true);
  }

 private:
  const std::size_t bytes_max_;
  const std::function<void(bool)> set_reading_;
  std::mutex mutex_;
  std::size_t bytes_ = 0;
  bool held_ = false;
};

}  // namespace motley::runtime

#pragma once
// An operating system process as the simulator sees it: it can be killed, started again, and stopped for a while, in
// which case everything waits and then happens at once. One thread.

#include <cstdint>
#include <deque>
#include <utility>

#include "base/assert.h"
#include "sim/event_queue.h"

namespace motley::sim {

class Process {
 public:
  explicit Process(EventQueue& queue) : queue_(queue) {}

  [[nodiscard]] bool alive() const noexcept { return alive_; }
  [[nodiscard]] bool frozen() const noexcept { return frozen_; }
  [[nodiscard]] Time now() const noexcept { return queue_.now(); }

  void start() {
    MOTLEY_ASSERT(!alive_);
    alive_ = true;
    frozen_ = false;
    ++life_;
  }
  void kill() {
    alive_ = false;
    inbox_.clear();
  }
  void freeze() { frozen_ = alive_; }
  void thaw() {
    frozen_ = false;
    while (alive_ && !frozen_ && !inbox_.empty()) {
      EventQueue::Action action = std::move(inbox_.front());
      inbox_.pop_front();
      action();
    }
  }

  /// Now, or when it goes on; never if it is dead.
  void run(EventQueue::Action action) {
    if (!alive_) return;
    if (frozen_) {
      inbox_.push_back(std::move(action));
    } else {
      action();
    }
  }
  /// After `delay`, unless it was killed meanwhile.
  void later(Duration delay, EventQueue::Action action) {
    queue_.after(delay, [this, life = life_, action = std::move(action)]() mutable {
      if (alive_ && life == life_) run(std::move(action));
    });
  }

 private:
  EventQueue& queue_;
  bool alive_ = false, frozen_ = false;
  std::uint64_t life_ = 0;
  std::deque<EventQueue::Action> inbox_;
};

}  // namespace motley::sim

#pragma once
// Virtual time: what is to happen, in order of time and then of asking. One thread.

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "base/time.h"

namespace motley::sim {

class EventQueue {
 public:
  using Action = std::function<void()>;

  [[nodiscard]] Time now() const noexcept { return now_; }
  [[nodiscard]] std::uint64_t happened() const noexcept { return happened_; }
  void at(Time time, Action action);
  void after(Duration delay, Action action) { at(now_ + delay, std::move(action)); }
  /// Lets the next thing happen. False when there is none.
  bool step();

 private:
  struct Entry {
    Time time{};
    std::uint64_t sequence = 0;
    Action action;
    bool operator>(const Entry& other) const noexcept {
      return time != other.time ? time > other.time : sequence > other.sequence;
    }
  };
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> entries_;
  Time now_{};
  std::uint64_t sequence_ = 0;
  std::uint64_t happened_ = 0;
};

}  // namespace motley::sim

#pragma once
// What the loss gets of the steps to come, and how workers get it: ahead of every Grant that needs it, and behind the
// end of every one before, because control frames keep their order. One thread at a time.

#include <utility>
#include <vector>

#include "engine/head/sessions.h"
#include "motley/task.h"

namespace motley::engine {

class StateSender {
 public:
  /// REQUIRES sessions outlives this.
  StateSender(LossState first, Sessions& sessions) : state_(std::move(first)), sessions_(sessions) {}

  [[nodiscard]] const LossState& state() const noexcept { return state_; }
  /// Nothing where there is no such thing.
  void send(const Session& to);
  /// To everybody who was admitted.
  void change(SharedBytes bytes);

 private:
  LossState state_;
  Sessions& sessions_;
  std::vector<SharedBytes> pieces_;  // of state_, once somebody got them
};

}  // namespace motley::engine

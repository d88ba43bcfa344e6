#pragma once
// What the loss gets, on its way: cut in pieces by the coordinator, put together by the worker. One thread at a time.

#include <cstdint>
#include <vector>

#include "motley/result.h"
#include "motley/task.h"
#include "wire/messages.h"

namespace motley::engine {

/// Bodies of control frames, in their order.
std::vector<SharedBytes> pieces_of(const LossState& state);

class LossStateAssembler {
 public:
  void reset() { *this = {}; }
  /// ErrorCode::protocol for pieces that are out of order, too long, or of a number that is not newer.
  Status add(const wire::State& piece);
  /// The newest whole one.
  [[nodiscard]] const LossState& state() const noexcept { return state_; }

 private:
  LossState state_;
  std::uint64_t number_ = 0;  // of what comes; 0: nothing does
  std::uint64_t bytes_ = 0;   // it will have
  std::vector<std::byte> here_;
};

}  // namespace motley::engine

#pragma once
// How much is read of somebody who has not proven who he is. Private to tcp/. proven() and prove() may be called from
// any thread; all else on the strand of the socket.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/assert.h"
#include "motley/result.h"

namespace motley::transport {

class ReadBudget {
 public:
  /// REQUIRES unproven_max is positive if not `proven`.
  ReadBudget(bool proven, std::size_t unproven_max) : proven_(proven), max_(unproven_max) {}

  [[nodiscard]] bool proven() const { return proven_; }
  /// False: it was proven before.
  bool prove() { return !proven_.exchange(true); }

  /// Of bytes wanted, how many to read: one byte above the limit is enough to notice, no more.
  [[nodiscard]] std::size_t at_most(std::size_t wanted) const {
    if (proven_) return wanted;
    MOTLEY_ASSERT(received_ <= max_);
    return static_cast<std::size_t>(std::min<std::uint64_t>(wanted, max_ - received_ + 1));
  }
  /// Error `refused` when that is too much; `from` is an address, for people.
  Status count(std::size_t bytes, const std::string& from) {
    received_ += bytes;
    if (proven_ || received_ <= max_) return {};
    return Error{ErrorCode::refused,
                 from + " sent more than " + std::to_string(max_) + " bytes before it had proven itself", ""};
  }
  [[nodiscard]] std::uint64_t received() const { return received_; }

 private:
  std::atomic<bool> proven_;
  std::uint64_t max_;
  std::uint64_t received_ = 0;
};

}  // namespace motley::transport

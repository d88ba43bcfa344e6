#pragma once
// How many lines one session may write on the screen of the head: some at once, then one now and then, with the number
// of those that were left out. Value type; one thread at a time.

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "base/time.h"

namespace motley::engine {

class LineBudget {
 public:
  static constexpr std::uint32_t kAtOnce = 8;
  static constexpr Duration kOneMore = std::chrono::seconds(10);

  /// Whether the line may go out now. If so `text` gets the number of those that did not.
  bool take(std::string& text, Time now) {
    const Duration::rep earned = (now - since_) / kOneMore;
    used_ -= static_cast<std::uint32_t>(std::min<Duration::rep>(earned, used_));
    since_ = used_ == 0 ? now : since_ + earned * kOneMore;
    if (used_ == kAtOnce) {
      ++left_out_;
      return false;
    }
    ++used_;
    if (const std::uint64_t count = std::exchange(left_out_, 0); count > 0)
      text += " (" + std::to_string(count) + " lines like it were left out)";
    return true;
  }

 private:
  std::uint32_t used_ = 0;
  std::uint64_t left_out_ = 0;
  Time since_{};
};

}  // namespace motley::engine

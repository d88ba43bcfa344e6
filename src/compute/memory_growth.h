#pragma once
// What is done about memory that a library takes and never gives back, nor counts: its caches are emptied, and where
// that does not help a new process has to go on. Pure.

#include <algorithm>
#include <cstdint>

namespace motley::compute {

class MemoryGrowth {
 public:
  /// Bytes above what the process had after its first tasks that are too many.
  static constexpr std::uint64_t kMost = std::uint64_t{2} << 30;
  static constexpr std::uint32_t kFirst = 30;   // looks, of one a second, until it has what it needs
  static constexpr std::uint32_t kEmptied = 3;  // times the caches were emptied in vain

  enum class Act : std::uint8_t { nothing, empty_caches, new_process };
  /// `bytes`: that the process has now.
  [[nodiscard]] Act decide(std::uint64_t bytes) noexcept {
    if (looks_ < kFirst) {
      ++looks_;
      needs_ = std::max(needs_, bytes);
      return Act::nothing;
    }
    if (bytes <= needs_ + kMost) {
      in_vain_ = 0;
      return Act::nothing;
    }
    return ++in_vain_ > kEmptied ? Act::new_process : Act::empty_caches;
  }

 private:
  std::uint64_t needs_ = 0;
  std::uint32_t looks_ = 0, in_vain_ = 0;
};

}  // namespace motley::compute

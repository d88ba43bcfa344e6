#pragma once
// How many samples a helper is asked for at a time: as many as it had there in time, twice as many the next time; half
// as many after what came late. Value type.

#include <algorithm>
#include <cstdint>

namespace motley::modes {

class HelperSize {
 public:
  static constexpr std::uint32_t kLateMax = 5;     // in a row: it does not help
  static constexpr std::uint32_t kForgotten = 32;  // times in time, until what was too much is tried again

  /// At most `most`.
  [[nodiscard]] std::uint64_t next(std::uint64_t most) const noexcept {
    return std::min(most, size_ == 0 ? std::max<std::uint64_t>(1, most / 4) : size_);
  }
  void in_time(std::uint64_t samples) noexcept {
    late_ = 0;
    if (++in_time_ >= kForgotten) too_many_ = 0;
    if (samples < size_) return;  // the end of what others left of the step
    const std::uint64_t twice = std::max<std::uint64_t>(1, 2 * samples);
    // Below what was too much it comes nearer by halves.
    size_ = too_many_ == 0 || twice < too_many_ ? twice : samples + (too_many_ - std::min(samples, too_many_)) / 2;
  }
  void late(std::uint64_t samples) noexcept {
    ++late_;
    in_time_ = 0;
    too_many_ = samples;
    size_ = std::max<std::uint64_t>(1, samples / 2);
  }
  [[nodiscard]] bool in_vain() const noexcept { return late_ >= kLateMax; }
  /// It begins anew.
  void rested() noexcept { *this = HelperSize(); }

 private:
  std::uint64_t size_ = 0;      // 0: nothing is known
  std::uint64_t too_many_ = 0;  // 0: nothing is known
  std::uint32_t late_ = 0, in_time_ = 0;
};

}  // namespace motley::modes

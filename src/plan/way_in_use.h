#pragma once
// The way that numbers go between machines now, as far as what is predicted of passes depends on it. Pure.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "plan/link_model.h"

namespace motley::plan {

class WayInUse {
 public:
  /// So many passes it is untried at the most.
  static constexpr std::uint32_t kUntried = 6;

  explicit WayInUse(bool untried) noexcept : untried_(untried ? kUntried : 0) {}

  /// Numbers go another way than in the passes so far.
  void begin() noexcept { untried_ = kUntried; }
  /// A pass went it; or somebody is late, which is no matter of the way.
  void known() noexcept { untried_ = 0; }
  /// A pass is closed, of which contributions were summed on their way, or not.
  void closed(bool in_sums) noexcept;
  /// Ways are compared, and that of now may be one that will not stay: nobody is left out for it.
  void compared(bool trying, bool against_best) noexcept { trying_ = trying, against_best_ = against_best; }

  [[nodiscard]] bool untried() const noexcept { return untried_ > 0; }
  [[nodiscard]] bool in_sums() const noexcept { return in_sums_; }
  [[nodiscard]] bool trying() const noexcept { return trying_; }
  [[nodiscard]] bool against_best() const noexcept { return against_best_; }

  /// What a worker is taken to wait in a pass of an untried way: as long as its first version took, had none of those
  /// who came at the same time done so.
  static double wait(double version_seconds, std::size_t together) noexcept {
    return version_seconds / static_cast<double>(together);
  }
  /// What a lease of it may take more: a version there and back, as the first one came, beside all others.
  [[nodiscard]] double patience(double version_seconds) const noexcept;

 private:
  std::uint32_t untried_;  // passes left
  bool in_sums_ = false;   // the newest pass
  bool trying_ = false, against_best_ = false;
};

/// A contribution that came in a sum with others.
struct SumPart {
  std::uint64_t worker = 0, lease = 0, samples = 0;
  double seconds = 0;   // until it was whole
  double computed = 0;  // of these, as its worker says
};

/// A sum is whole at the same time for all who are in it. What that takes beyond the longest computing is what each
/// waits: by that it is nobody's fault, and shares follow what devices take. Sets `seconds` to that.
void share_waiting(std::span<SumPart> parts) noexcept;

}  // namespace motley::plan

#pragma once
// Who pays: whether passes with a worker are shorter than without it. Pure.

#include <cstdint>
#include <optional>
#include <span>

#include "plan/planner.h"

namespace motley::plan {

struct Verdict {
  bool pays = true;
  double with = 0, without = 0;  // seconds of a pass, where it does not; 0: unknown
};

/// By the models: whether a pass by the candidates ends sooner when `mine` joins them. `alone`: of a pass that the only
/// candidate makes by itself, where it does. REQUIRES all of them measured, and candidates not empty.
Verdict judge(const Request& request, std::span<const Candidate> candidates, const Candidate& mine,
              std::optional<double> alone);

/// By what was measured. Models do not tell help from harm where the difference is some percent: serving others slows
/// the head's own device down, and that is in its measured times. So the mean of the newest passes is compared with
/// steps that one worker, which had a share in them, made alone.
class Comparison {
 public:
  /// Passes from now on are others: by other workers, after a step alone, or with another codec.
  void begin() noexcept { passes_ = 0; }
  /// `counts`: it is not one of the first, which are cold.
  void closed(double seconds, bool counts) noexcept;
  /// `alone`: a step of `total` samples as the worker made it by itself, if it did; `computes`: as its device would
  /// compute it. What does not pay and has no times is in doubt: it never was alone, and may be faster so.
  Verdict compare(std::uint64_t total, std::optional<double> alone, std::optional<double> computes) noexcept;
  /// Once it was alone because of that doubt: whether the passes before were shorter.
  [[nodiscard]] Verdict resolve(std::uint64_t total, std::optional<double> alone) const noexcept;

 private:
  std::uint32_t passes_ = 0;
  double seconds_ = 0;  // mean of the newest of these; before, of those that do not count
  struct {
    double seconds = 0;
    std::uint64_t total = 0;
  } doubted_;  // what compare() could not tell
};

}  // namespace motley::plan

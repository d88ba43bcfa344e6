#pragma once
// Who pays: whether passes with a worker are shorter than without it. Pure.

#include <array>
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
/// the head's own device down, and that is in its measured times. So where help is in doubt a block of steps is made by
/// one worker alone, and its mean compared with that of a block of passes: blocks in turn, because the speed of a
/// machine drifts by more than is at stake, and passes behind a doubt, because those that led to it are the slow ones.
/// As many blocks as it takes until the mean of the differences is beyond chance (Welch's test with Gaussian bounds);
/// each costs a part of what the others gain.
class Comparison {
 public:
  /// Passes from now on are others: by other workers, or with another codec.
  void begin() noexcept;
  /// Steps were made alone; passes from now on are by the same workers.
  void interrupted() noexcept { passes_ = {}; }
  /// `counts`: it is not one of the first, which are cold.
  void closed(double seconds, bool counts) noexcept;
  /// A step that one worker made alone.
  void alone(double seconds) noexcept;
  /// `alone`: a step of `total` samples as the worker made it by itself, if it did, maybe long ago; `computes`: as its
  /// device would compute it. What does not pay and has no times is in doubt: a block alone would tell.
  Verdict compare(std::uint64_t total, std::optional<double> alone, std::optional<double> computes) noexcept;
  /// After that block. What does not pay has times.
  Verdict resolve(std::uint64_t total) noexcept;

 private:
  static constexpr std::uint32_t kCompared = 16;  // passes of a block, the newest

  /// Durations of some steps.
  struct Steps {
    std::uint32_t count = 0;
    double mean = 0, squares = 0;  // of the differences from the mean
    void add(double seconds) noexcept;
  };
  /// What is gained of a pass, and the variance of that.
  struct Gain {
    double mean = 0, variance = 0;
  };
  [[nodiscard]] static Gain gain(const Steps& with, const Steps& alone) noexcept;
  [[nodiscard]] Steps newest() const noexcept;
  [[nodiscard]] bool rests() const noexcept;
  Verdict weigh(const Steps& with, std::uint64_t total) noexcept;

  struct {
    std::uint32_t count = 0;
    std::array<double, kCompared> seconds{};  // in turn
  } passes_;
  struct {
    std::uint64_t total = 0;  // 0: there is none
    Steps doubted, alone;     // `doubted`: the passes that led to it; none where it goes on with what is compared
    bool begun = false;       // its first step alone was made, which is cold
  } block_;
  Steps alone_;  // the newest block, while the passes are awaited that it is compared with
  // Over the blocks: the sum of what is gained of a pass, and of the variances of that.
  struct {
    std::uint32_t blocks = 0;
    double gain = 0, variance = 0;
  } evidence_;
  std::uint32_t answered_ = 0;  // times that the gain was beyond chance, or nothing was learned
};

}  // namespace motley::plan

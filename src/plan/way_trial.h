#pragma once
// Which way numbers go between machines: tried, since what links carry and what each hop costs processors tells too
// little. Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/paired_blocks.h"

namespace motley::plan {

/// By what can go wrong with it, the least first.
enum class Way : std::uint8_t {
  star,     // between the coordinator and each
  weights,  // weights from worker to worker
  both,     // gradients as well, the other way
};

/// Begins with the way that asks least of the coordinator's link, and holds each other one against the best so far, in
/// blocks of steps in turn. What is clearly slower or faster is known within three steps; of two between which steps do
/// not tell, the one is taken with which less can go wrong. Trying costs about ten steps of each other way; again only
/// when others take part, and more rarely each time.
class WayTrial {
 public:
  static constexpr std::uint32_t kBlock = 8, kCold = 2;  // steps; those of the latter do not count
  static constexpr std::uint32_t kPairsMax = 4;
  static constexpr double kLeastGain = 0.02;       // of a step, for which more may go wrong
  static constexpr double kClear = 1.25;           // times as long: no need to see more than
  static constexpr std::uint32_t kClearSteps = 3;  // these
  static constexpr std::uint32_t kPatience = 40;   // steps for a block that does not come about
  static constexpr std::uint32_t kStepsMax = 400;  // of a comparison, whoever comes and goes meanwhile
  static constexpr std::uint64_t kBetween = 64;    // steps behind an answer at the least, twice as many after each

  /// REQUIRES `ways` not empty, each one once, in their order.
  explicit WayTrial(std::vector<Way> ways);

  /// That steps to come are to go.
  [[nodiscard]] Way way() const noexcept { return trying_ ? trying_->way : best_; }
  /// It may be another one soon, and not because of what steps come to.
  [[nodiscard]] bool trying() const noexcept { return trying_.has_value(); }
  /// In a block of another way than the best so far.
  [[nodiscard]] bool against_best() const noexcept { return trying_ && trying_->way != best_; }
  /// A step that went `went` took so long for the same work. `counts`: nothing else was going on.
  void closed(Way went, double seconds, bool counts) noexcept;
  /// What was measured in this block is of other shares.
  void again() noexcept;
  /// Others take part, or steps are of other sizes: what was measured so far is of another run.
  void others() noexcept;
  /// By which part a step took longer on the way that came closest, when ways were compared last; empty: not yet, or
  /// there was no other.
  [[nodiscard]] std::optional<double> gained() const noexcept { return found_; }
  /// For people: the way of now, and what is known of it.
  [[nodiscard]] std::string why() const;

 private:
  struct Block {
    Way way;
    Durations steps{};
    std::uint32_t cold = kCold, waited = 0;
  };
  void begin();
  void begin_block(Way way) noexcept;
  void end_block();
  void weigh();
  /// What is tried against the best one is worse by that, or cannot be had; is better.
  void drop(std::optional<double> gain);
  void take(double gain);
  void next();

  std::vector<Way> ways_;
  Way best_;
  std::vector<Way> left_;        // to be tried, the last one first, so the star last of all
  std::optional<Block> trying_;  // the block of now
  Durations of_best_;            // its newest block
  PairedBlocks pairs_{kPairsMax, kLeastGain};
  std::optional<double> closest_, found_;  // gained(): of this comparison so far, of the last one
  bool asked_ = false;                     // others came since
  std::uint32_t steps_ = 0;                // of this comparison
  std::uint64_t since_ = 0, rest_ = kBetween / 2;
};

}  // namespace motley::plan

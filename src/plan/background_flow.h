#pragma once
// What may be sent beside the training, as files to a machine that has none yet, without steps becoming longer than a
// bound: it flows for some steps and rests for others, and for how many follows from how much longer steps took while
// it flowed. Who begins is lent time of steps to come, and rests are longer until that is paid back. One thread at a
// time.

#include <cstddef>
#include <cstdint>

#include "base/time.h"

namespace motley::plan {

class BackgroundFlow {
 public:
  static constexpr double kSlowdownMax = 0.02;  // of the steps on average; 0.03 is promised
  static constexpr double kPartMin = 0.005;     // of the steps in which it flows: else nothing is learned
  static constexpr double kPartMax = 0.9;       // else there is nothing to compare with
  static constexpr Duration kFlowMin = std::chrono::milliseconds(250);  // what is queued still goes out when it rests
  static constexpr double kDebtMax = 0.15;                 // seconds: with the above 0.03 of a quarter of a minute
  static constexpr std::size_t kLentBytesMax = 64U << 20;  // within one step

  /// Somebody wants something, or nobody does.
  void set_wanted(bool wanted);
  /// Whether steps are made that could become longer.
  void set_training(bool training);
  /// A step is closed that took so long.
  void step(double seconds, std::uint64_t samples);
  [[nodiscard]] bool flows() const noexcept { return !training_ || (wanted_ && flowing_); }
  /// What is lent may flow although it rests: what was sent is to be said by lent().
  [[nodiscard]] bool lends() const noexcept { return debt_ < kDebtMax && lent_bytes_ < kLentBytesMax; }
  void lent(std::size_t bytes) noexcept { lent_bytes_ += bytes; }
  /// How much longer a step takes while it flows, at the most that is likely; 1 where nothing is known.
  [[nodiscard]] double slowdown() const noexcept;
  /// Of the steps, in how many it flows.
  [[nodiscard]] double part() const noexcept;

 private:
  /// What later values count more of.
  struct Fading {
    double weight = 0, sum = 0;
    void add(double value, double memory) noexcept {
      weight = weight * memory + 1;
      sum = sum * memory + value;
    }
    [[nodiscard]] double mean() const noexcept { return sum / weight; }
  };
  void take_flowing(double each);
  void take_resting(double each);
  void turn();
  void borrow(double seconds, std::uint64_t samples);

  bool wanted_ = false, training_ = false;
  bool flowing_ = true;
  double flowed_ = 1;           // steps of the newest turn in which it flows
  std::uint64_t left_ = 1;      // steps of this turn
  std::uint64_t unknown_ = 5;   // steps of the next turn in which it rests, as long as nothing was learned
  bool partly_ = false;         // the open step began before what is true now
  std::size_t lent_bytes_ = 0;  // in the open step
  bool lent_ = false;           // in the one before
  double debt_ = 0;             // seconds
  bool fresh_ = false;          // no step of this turn is closed yet
  Fading step_seconds_{};
  Fading seconds_{};   // of a sample, in steps in which it rests
  Fading spread_{};    // squares of how far such steps are from their mean, relative to it
  Fading slowdown_{};  // of steps in which it flows, relative to those
};

}  // namespace motley::plan

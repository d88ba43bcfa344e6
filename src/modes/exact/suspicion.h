#pragma once
// Whose gradients point elsewhere than those of the others, beyond chance. It says who is to be looked at, and nothing
// more: an honest worker with unusual samples points elsewhere, too. Pure; one thread at a time.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fleet/member.h"
#include "modes/work/bearing.h"

namespace motley::modes {

using fleet::WorkerId;

/// A contribution to a step.
struct Pointing {
  WorkerId worker = 0;
  double weight = 0;
  const Bearing* bearing = nullptr;  // of the sum
  bool believed = false;             // the head's own device
};

class Suspicion {
 public:
  /// In a step, on average and at the most, of an honest worker that is the furthest off, and by kFar, one time in five
  /// (kChance): a sequential test (Page 1954; Lorden 1971).
  static constexpr double kFalseAlarms = 1e-4;
  static constexpr double kChance = 0.2, kLying = 0.5;  // of an honest worker, and of one who lies
  static constexpr double kFar = 1.5;       // times as far from the others, squared, as they are among themselves
  static constexpr double kFarAtOnce = 3;   // likewise: in one step
  static constexpr double kFurther = 1.5;   // times the furthest that was seen of late, likewise
  static constexpr double kNewest = 0.1;    // part of the mean that the newest step is
  static constexpr double kNewestMost = 2;  // times the mean that it counts as at the most
  static constexpr double kMore = 1.25;     // times as far off is usual, after it was suspected and right
  static constexpr double kKept = 0.995;    // of that, from step to step
  static constexpr double kSame = 0.1;      // part of the norm: second looks see no less (engine/sketches)

  /// A step opens.
  void begin() noexcept { alone_ = 0; }
  /// Its contributions. Returns which of the contributions is so far off that it is to be looked at before it counts.
  /// Says nothing of one who is alone, nor of two where neither is believed.
  [[nodiscard]] std::optional<std::size_t> step(std::span<const Pointing> parts);
  /// Of whom it is beyond chance, over its steps.
  [[nodiscard]] bool of(WorkerId worker) const noexcept;
  /// It was looked at, and is right: as far off as it was is usual for it.
  void cleared(WorkerId worker) noexcept;

 private:
  struct Known {
    WorkerId worker = 0;
    double evidence = 1;  // that it lies: how much likelier its newest steps are then, since it began at the latest
    double mean = 0;      // how far off it is, of late
    double right = 1;     // how far off it was when it was right
    double usual = 1;     // that, and more for a while after it was suspected and right
  };
  Known& known(WorkerId worker);
  /// How far each is from the others, squared, over what is usual among these.
  void measure(std::span<const Pointing> parts);
  void measure_beside(const Pointing& believed, std::span<const Pointing> parts);

  std::vector<Known> known_;
  std::vector<double> far_;          // of the step, by part; kept for its memory
  WorkerId alone_ = 0;               // that is to be looked at for this step,
  double alone_far_ = 1;             // and how far off it is
  double furthest_ = 1;              // of late, of those who are not to be looked at, or were and are right
  std::optional<Bearing> believed_;  // of the head's own device, a mean, one step before
  double believed_weight_ = 0;
};

}  // namespace motley::modes

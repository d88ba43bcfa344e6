#pragma once
// What contributions say of themselves, held against what can be and against what those of other workers said. What no
// others come near is not refused for good: it is computed once more by somebody else, and believed
// if that says the same. Value type; one thread at a time.

#include <cstdint>
#include <vector>

#include "modes/work/lease.h"

namespace motley::modes {

struct Declared {
  std::uint64_t count = 0;
  double weight = 0, loss_sum = 0;
  Largest largest{};
};

class DeclaredBounds {
 public:
  static constexpr double kWeightPerSampleMax = 1099511627776.0;  // 2^40: sums over a pass stay finite and exact enough
  static constexpr double kLossMax = 1e38;                        // of an item, or a sample; what a float can hold
  static constexpr std::uint32_t kEnough = 8;                     // contributions of others, to compare with
  static constexpr double kFar = 16;                              // times as much as any other said
  static constexpr double kLossFar = 1000;                        // losses of steps differ more than counts of items
  static constexpr double kGradientFar = 1000;                    // likewise

  /// Whether the weight can be that of so many samples at all.
  [[nodiscard]] static bool possible(std::uint64_t count, double weight) noexcept;
  [[nodiscard]] static bool possible(const Declared& said) noexcept;
  /// False where others said enough, and nothing near; where they did not, what it said itself counts with it.
  [[nodiscard]] bool likely(WorkerId worker, const Declared& said) const noexcept;
  /// Of what is not likely: one other alone said enough, and not on the head's machine, and this is as large as what
  /// the worker said from the beginning. One of the two is wrong, and nobody knows which.
  [[nodiscard]] bool undecided(WorkerId worker, const Declared& said) const noexcept;
  /// It counts in a step.
  void counted(WorkerId worker, const Declared& said, bool local);

 private:
  struct Extent {
    double weight = 0, weight_per_sample = 0, loss = 0, loss_per_item = 0;  // the largest
    Largest largest{}, per_item{};

    void raise(const Extent& by) noexcept;
    [[nodiscard]] bool near(const Declared& said) const noexcept;
  };
  struct Seen {
    WorkerId worker = 0;
    bool local = false;
    std::uint32_t contributions = 0;
    Extent most{}, early{};  // early: of the first kEnough
  };

  std::vector<Seen> seen_;
};

}  // namespace motley::modes

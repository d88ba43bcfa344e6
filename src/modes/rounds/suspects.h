#pragma once
// Whose part of a round was refused, for numbers that are not finite or that nobody comes near. The same positions come
// again in the next round, and show then whether it was the worker or the samples. One thread at a time.

#include <span>
#include <vector>

#include "fleet/member.h"
#include "modes/rounds/round_plan.h"

namespace motley::modes {

class Suspects {
 public:
  enum class Why : std::uint8_t { not_finite, unlikely };

  /// `decides`: whose result of these positions counts shows that it was wrong.
  void add(fleet::WorkerId worker, Why why, RoundSpans parts, bool decides = true);
  /// Whether another worker came to it for some of these positions: then it is the samples, and nobody is a suspect.
  bool believe(fleet::WorkerId worker, Why why, std::span<const Owed> parts);
  /// Who came to it for some of these positions.
  [[nodiscard]] std::vector<fleet::WorkerId> of(Why why, std::span<const Owed> parts) const;
  /// Somebody's result of these positions counts. The workers of whom it shows that they were wrong; nothing more is
  /// known of these positions then.
  [[nodiscard]] std::vector<fleet::WorkerId> counted(fleet::WorkerId by, std::span<const Owed> parts);
  [[nodiscard]] bool has(fleet::WorkerId worker) const noexcept;

 private:
  struct Suspect {
    fleet::WorkerId worker = 0;
    Why why = Why::not_finite;
    RoundSpans parts{};
    bool decides = true;
  };
  static constexpr std::size_t kSuspectsMax = 256;

  std::vector<Suspect> suspects_;  // the oldest first
};

}  // namespace motley::modes

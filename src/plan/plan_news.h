#pragma once
// When people are told of the plan again. Pure.

#include <cstdint>
#include <span>
#include <vector>

#include "plan/settling.h"

namespace motley::plan {

/// When others have a share in the newest pass than when it was told, and when what is known of them has settled since.
class PlanNews {
 public:
  /// A pass opens, with shares for these.
  void shared(std::span<const std::uint64_t> workers);
  /// One of them made a step by itself, which took so long.
  void alone(double seconds) noexcept;
  /// What was told is not true any more.
  void outdated() noexcept { told_.clear(); }
  void told(Settling::Stage stage);
  [[nodiscard]] bool news(Settling::Stage stage) const noexcept { return sharing_ != told_ || stage > told_stage_; }

  /// Who has a share in the newest pass.
  [[nodiscard]] const std::vector<std::uint64_t>& sharing() const noexcept { return sharing_; }

 private:
  std::vector<std::uint64_t> sharing_, told_;
  Settling::Stage told_stage_ = Settling::Stage::unsettled;
  struct Alone {
    std::uint32_t steps = 0;
    double seconds = 0;
    Settling::Stage told = Settling::Stage::unsettled;
    [[nodiscard]] Settling::Stage stage() const noexcept;
  };
  Alone alone_;  // since the last pass
};

}  // namespace motley::plan

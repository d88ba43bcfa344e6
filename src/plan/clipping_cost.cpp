#include "plan/clipping_cost.h"

namespace motley::plan {
namespace {

constexpr std::uint32_t kCold = 4;      // steps that pay for caches and first touch
constexpr std::uint32_t kSteps = 16;    // are a mean
constexpr double kWorthTelling = 0.03;  // of a step

}  // namespace

std::optional<ClippingCost::Mean> ClippingCost::step(double step_seconds, double update_seconds) noexcept {
  if (told_ || !(step_seconds > 0)) return std::nullopt;
  if (cold_ < kCold) {
    ++cold_;
    return std::nullopt;
  }
  step_seconds_ += step_seconds;
  // What is left then is the update of the chunk that comes last.
  update_seconds_ += update_seconds * (1 - 1 / chunks_);
  if (++steps_ < kSteps) return std::nullopt;
  const Mean mean{step_seconds_ / steps_, update_seconds_ / steps_};
  steps_ = 0;
  step_seconds_ = update_seconds_ = 0;
  told_ = mean.part() > kWorthTelling;
  return told_ ? std::optional(mean) : std::nullopt;
}

}  // namespace motley::plan

#include "plan/background_flow.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace motley::plan {
namespace {

constexpr double kMemoryResting = 0.97;  // some thirty steps
constexpr double kMemoryFlowing = 0.95;  // some twenty
constexpr double kUnlikeMax = 4;         // a step that took five times as long is reason enough
constexpr double kStepsKnown = 5;        // from so many on, their spread says something
constexpr double kSpread = 0.1;          // before
constexpr double kRestMin = 2;           // steps
constexpr std::uint64_t kRestUnknownMax = 80;

}  // namespace

void BackgroundFlow::set_wanted(bool wanted) {
  partly_ = partly_ || wanted != wanted_;
  wanted_ = wanted;
}

void BackgroundFlow::set_training(bool training) {
  partly_ = partly_ || training != training_;
  training_ = training;
}

double BackgroundFlow::slowdown() const noexcept {
  if (slowdown_.weight == 0) return 1;
  const double spread = spread_.weight < kStepsKnown ? kSpread : std::sqrt(spread_.mean());
  const double error = spread * std::sqrt(1 / slowdown_.weight + 1 / seconds_.weight);
  return std::max(0.0, slowdown_.mean()) + error;
}

double BackgroundFlow::part() const noexcept { return std::clamp(kSlowdownMax / slowdown(), kPartMin, kPartMax); }

void BackgroundFlow::step(double seconds, std::uint64_t samples) {
  if (samples == 0 || !(seconds > 0)) return;
  step_seconds_.add(seconds, kMemoryResting);
  const bool first = std::exchange(fresh_, false);
  const bool lends = std::exchange(lent_bytes_, 0) > 0;
  const bool lent = std::exchange(lent_, lends) || lends;  // what is queued goes out in the step behind it
  const double each = seconds / static_cast<double>(samples);
  if (lent) borrow(seconds, samples);
  if (std::exchange(partly_, false) || lent) {
    // says nothing of either
  } else if (wanted_ && flowing_) {
    take_flowing(each);
  } else if (flowing_ || !first) {  // what was queued goes out in the first step in which it rests
    take_resting(each);
  }
  if ((flowing_ && !wanted_) || --left_ > 0) return;
  if (!flowing_ && debt_ > 0) {
    if (!lent) debt_ = std::max(0.0, debt_ - kSlowdownMax * seconds);
    left_ = 1;
    return;
  }
  flowing_ = !flowing_;
  turn();
}

// Where it is not known how long the step takes without, half of it.
void BackgroundFlow::borrow(double seconds, std::uint64_t samples) {
  const double expected = seconds_.weight > 0 ? seconds_.mean() * static_cast<double>(samples) : seconds / 2;
  debt_ = std::max(0.0, debt_ + std::min(seconds - expected, kUnlikeMax * expected));
}

void BackgroundFlow::take_flowing(double each) {
  if (seconds_.weight == 0) return;
  slowdown_.add(std::clamp(each / seconds_.mean() - 1, -kUnlikeMax, kUnlikeMax), kMemoryFlowing);
}

void BackgroundFlow::take_resting(double each) {
  if (seconds_.weight > 0) {
    const double off = std::clamp(each / seconds_.mean() - 1, -kUnlikeMax, kUnlikeMax);
    spread_.add(off * off, kMemoryResting);
  }
  seconds_.add(each, kMemoryResting);
}

// A turn in which it rests has steps to compare with, and one in which it flows is so long that what is queued at its
// end matters little.
void BackgroundFlow::turn() {
  fresh_ = true;
  if (!flowing_ && slowdown_.weight == 0) {
    left_ = unknown_;
    unknown_ = std::min(2 * unknown_, kRestUnknownMax);
    return;
  }
  const double part_now = part();
  if (!flowing_) {
    left_ = static_cast<std::uint64_t>(std::max(kRestMin, std::ceil(flowed_ * (1 - part_now) / part_now)));
    return;
  }
  flowed_ = std::max(1.0, std::round(kRestMin * part_now / (1 - part_now)));
  if (step_seconds_.weight > 0)
    flowed_ = std::max(flowed_, std::ceil(motley::seconds(kFlowMin) / step_seconds_.mean()));
  left_ = static_cast<std::uint64_t>(flowed_);
}

}  // namespace motley::plan

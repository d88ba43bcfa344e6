#include "engine/head/step_norms.h"

#include <algorithm>
#include <cmath>

namespace motley::engine {

std::span<double> StepNorms::of(std::span<const Part> parts) {
  if (useless_) return {};
  if (ranges_.empty()) {
    for (const Part& part : parts) {
      ranges_.push_back(part.range);
      weights_.push_back(part.weight);
    }
    squares_.assign(ranges_.size(), 0);
  }
  useless_ = parts.size() < 2 || !std::ranges::equal(parts, ranges_, {}, &Part::range);
  if (useless_) return {};
  return squares_;
}

std::optional<plan::NoiseEstimate> StepNorms::close(std::uint64_t samples) {
  std::optional<plan::NoiseEstimate> estimate;
  if (!useless_) {
    for (std::size_t i = 0; i < ranges_.size(); ++i) parts_.push_back({weights_[i], squares_[i]});
    estimate = plan::noise_estimate(parts_, mean_square_, static_cast<double>(samples));
  }
  drop();
  return estimate;
}

// The square of a sum is the squares of its parts and the products of any two.
std::optional<double> StepNorms::cosine() const {
  if (useless_ || ranges_.size() < 2) return {};
  double weight = 0, norms = 0, squares = 0;
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    weight += weights_[i];
    norms += std::sqrt(squares_[i]);
    squares += squares_[i];
  }
  const double alike = norms * norms - squares;
  const double found = (weight * weight * mean_square_ - squares) / alike;
  if (!(alike > 0) || !std::isfinite(found)) return {};
  return std::clamp(found, -1.0, 1.0);
}

void StepNorms::drop() {
  ranges_.clear();
  weights_.clear();
  parts_.clear();
  mean_square_ = 0;
  useless_ = false;
}

}  // namespace motley::engine

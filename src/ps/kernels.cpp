#include "ps/kernels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/assert.h"

namespace motley::ps {
namespace {

// Small enough for the first-level cache together with one part, so that adding many parts streams each part once.
constexpr std::size_t kBlock = 4096;
constexpr std::size_t kLanes = 16;

/// In a fixed number of lanes: a single running sum would not vectorise, and letting the compiler reorder it would make
/// processors disagree.
double sum_of_squares(const float* values, std::size_t count) noexcept {
  std::array<double, kLanes> lanes{};
  const std::size_t whole = count / kLanes * kLanes;
  for (std::size_t i = 0; i < whole; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const auto value = static_cast<double>(values[i + lane]);
      lanes[lane] += value * value;
    }
  }
  for (std::size_t i = whole; i < count; ++i) {
    const auto value = static_cast<double>(values[i]);
    lanes[i - whole] += value * value;
  }
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

void add(float* __restrict out, const float* __restrict part, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) out[i] += part[i];
}

template <bool kNesterov>
void sgd_momentum_loop(const SgdArrays& a, const StepScalars& s) noexcept {
  const float* __restrict weights = a.weights;
  const float* __restrict gradient = a.gradient;
  const float* __restrict momentum = a.momentum;
  float* __restrict new_weights = a.new_weights;
  float* __restrict new_momentum = a.new_momentum;
  for (std::size_t i = 0; i < a.count; ++i) {
    const float g = gradient[i] + s.weight_decay * weights[i];
    const float buffer = momentum[i] * s.momentum + s.fresh * g;
    new_momentum[i] = buffer;
    const float direction = kNesterov ? g + s.momentum * buffer : buffer;
    new_weights[i] = weights[i] + s.lr * direction;
  }
}

}  // namespace

StepScalars step_scalars(OptimizerKind kind, const GroupSpec& group, double lr, std::uint64_t version) {
  StepScalars s;
  if (kind == OptimizerKind::sgd) {
    s.lr = static_cast<float>(-lr);
    s.weight_decay = static_cast<float>(group.weight_decay);
    s.momentum = static_cast<float>(group.momentum);
    // torch starts the buffer as a copy of the first gradient: dampening does not act on it.
    s.fresh = version == 0 ? 1.0F : static_cast<float>(1 - group.dampening);
    s.nesterov = group.nesterov;
    return s;
  }
  const auto step = static_cast<double>(version) + 1;
  const double correction1 = 1 - std::pow(group.beta1, step);
  const double correction2 = 1 - std::pow(group.beta2, step);
  s.lr = static_cast<float>(-(lr / correction1));
  if (kind == OptimizerKind::adamw) {
    s.keep = static_cast<float>(1 - lr * group.weight_decay);
  } else {
    s.weight_decay = static_cast<float>(group.weight_decay);
  }
  s.fresh = static_cast<float>(1 - group.beta1);
  s.beta2 = static_cast<float>(group.beta2);
  s.fresh2 = static_cast<float>(1 - group.beta2);
  s.correction = static_cast<float>(std::sqrt(correction2));
  s.eps = static_cast<float>(group.eps);
  return s;
}

void sgd(const SgdArrays& a, const StepScalars& s) noexcept {
  const float* __restrict weights = a.weights;
  const float* __restrict gradient = a.gradient;
  float* __restrict new_weights = a.new_weights;
  for (std::size_t i = 0; i < a.count; ++i) {
    const float g = gradient[i] + s.weight_decay * weights[i];
    new_weights[i] = weights[i] + s.lr * g;
  }
}

void sgd_momentum(const SgdArrays& a, const StepScalars& s) noexcept {
  s.nesterov ? sgd_momentum_loop<true>(a, s) : sgd_momentum_loop<false>(a, s);
}

void adam(const AdamArrays& a, const StepScalars& s) noexcept {
  const float* __restrict weights = a.weights;
  const float* __restrict gradient = a.gradient;
  const float* __restrict mean = a.mean;
  const float* __restrict square = a.square;
  float* __restrict new_weights = a.new_weights;
  float* __restrict new_mean = a.new_mean;
  float* __restrict new_square = a.new_square;
  // torch's lerp works from the nearer end.
  const bool near_start = s.fresh < 0.5F;
  for (std::size_t i = 0; i < a.count; ++i) {
    const float g = gradient[i] + s.weight_decay * weights[i];
    const float m = near_start ? mean[i] + s.fresh * (g - mean[i]) : g + (s.fresh - 1.0F) * (g - mean[i]);
    const float v = square[i] * s.beta2 + s.fresh2 * g * g;
    new_mean[i] = m;
    new_square[i] = v;
    const float denominator = std::sqrt(v) / s.correction + s.eps;
    new_weights[i] = weights[i] * s.keep + s.lr * m / denominator;
  }
}

void move_statistics(const StatisticsArrays& a, float momentum) noexcept {
  const auto fresh = static_cast<double>(momentum);
  for (std::size_t i = 0; i < a.count; ++i) {
    const auto mean = static_cast<double>(a.merged_mean[i]);
    // Rounding of the two sums can leave a tiny negative number where the variance is zero.
    const double var = std::max(0.0, static_cast<double>(a.merged_square[i]) - mean * mean);
    a.new_mean[i] = static_cast<float>((1 - fresh) * static_cast<double>(a.mean[i]) + fresh * mean);
    a.new_var[i] = static_cast<float>((1 - fresh) * static_cast<double>(a.var[i]) + fresh * var);
  }
}

double sum_parts(std::span<float> out, std::span<const std::span<const float>> parts, float factor, bool with_squares) {
  MOTLEY_ASSERT(!parts.empty());
  double squares = 0;
  for (std::size_t first = 0; first < out.size(); first += kBlock) {
    const std::size_t count = std::min(kBlock, out.size() - first);
    float* block = out.data() + first;
    std::memcpy(block, parts[0].data() + first, count * sizeof(float));
    for (const auto& part : parts.subspan(1)) add(block, part.data() + first, count);
    scale({block, count}, factor);
    if (with_squares) squares += sum_of_squares(block, count);
  }
  return squares;
}

void scale(std::span<float> values, float factor) noexcept {
  for (float& value : values) value *= factor;
}

}  // namespace motley::ps

#include "ps/kernels.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/assert.h"

namespace motley::ps {
namespace {

// Small enough for the first-level cache together with one part, so that adding many parts streams each part once.
constexpr std::size_t kBlock = 4096;
static_assert(kBlock % codec::Encoded::kStride == 0);
constexpr std::size_t kLanes = 256;

/// In a fixed number of lanes: a single running sum would not vectorise, and letting the compiler reorder it would make
/// processors disagree. So many lanes that the inner loop is long enough for compilers to keep it a loop.
double sum_of_squares(const float* values, std::size_t count) noexcept {
  std::array<double, kLanes> lanes{};
  for (std::size_t first = 0; first < count; first += kLanes) {
    const std::size_t width = std::min(kLanes, count - first);
    for (std::size_t lane = 0; lane < width; ++lane) {
      const auto value = static_cast<double>(values[first + lane]);
      lanes[lane] += value * value;
    }
  }
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

/// Of a block, which is short enough for fp32: every lane adds few numbers.
double block_squares(const float* values, std::size_t count) noexcept {
  constexpr std::size_t kShortLanes = 64;
  std::array<float, kShortLanes> lanes{};
  for (std::size_t first = 0; first < count; first += kShortLanes) {
    const std::size_t width = std::min(kShortLanes, count - first);
    for (std::size_t lane = 0; lane < width; ++lane) lanes[lane] += values[first + lane] * values[first + lane];
  }
  for (std::size_t half = kShortLanes / 2; half >= 8; half /= 2)
    for (std::size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[half + lane];
  double sum = 0;
  for (std::size_t lane = 0; lane < 8; ++lane) sum += static_cast<double>(lanes[lane]);
  return sum;
}

/// a * b + c rounded once, as torch's kernels do with FMA instructions. The product of two floats is exact in double,
/// so this differs from a true FMA only where the double sum falls on a tie, and needs no instruction that some
/// processors lack.
inline float fused(float a, float b, float c) noexcept {
  return static_cast<float>(static_cast<double>(a) * static_cast<double>(b) + static_cast<double>(c));
}

template <bool kNesterov>
void sgd_momentum_loop(const SgdArrays& a, StepScalars s) noexcept {
  const float* __restrict weights = a.weights;
  const float* __restrict gradient = a.gradient;
  const float* __restrict momentum = a.momentum;
  float* __restrict new_weights = a.new_weights;
  float* __restrict new_momentum = a.new_momentum;
  const std::size_t count = a.count;
  for (std::size_t i = 0; i < count; ++i) {
    const float g = fused(s.weight_decay, weights[i], gradient[i]);
    const float buffer = fused(s.fresh, g, momentum[i] * s.momentum);
    new_momentum[i] = buffer;
    const float direction = kNesterov ? fused(s.momentum, buffer, g) : buffer;
    new_weights[i] = fused(s.lr, direction, weights[i]);
  }
}

/// kNearStart: torch's lerp works from the nearer end. Choices are template parameters and the arrays parameters of
/// their own, because otherwise GCC gives up on so many arrays and does not vectorise the loop.
template <bool kNearStart, bool kDecay>
void adam_loop(std::size_t count, const float* __restrict weights, const float* __restrict gradient,
               const float* __restrict mean, const float* __restrict square, float* __restrict new_weights,
               float* __restrict new_mean, float* __restrict new_square, StepScalars s) noexcept {
  const float pull = kNearStart ? s.fresh : s.fresh - 1.0F;
  for (std::size_t i = 0; i < count; ++i) {
    const float g = kDecay ? fused(s.weight_decay, weights[i], gradient[i]) : gradient[i];
    const float m = fused(pull, g - mean[i], kNearStart ? mean[i] : g);
    const float v = fused(s.fresh2 * g, g, square[i] * s.beta2);
    new_mean[i] = m;
    new_square[i] = v;
    // Rounded correctly here; torch's sqrt, where it comes from MKL, is sometimes one unit in the last place off.
    const float denominator = std::sqrt(v) / s.correction + s.eps;
    new_weights[i] = weights[i] * s.keep + s.lr * m / denominator;
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

void sgd(const SgdArrays& a, StepScalars s) noexcept {
  const float* __restrict weights = a.weights;
  const float* __restrict gradient = a.gradient;
  float* __restrict new_weights = a.new_weights;
  const std::size_t count = a.count;
  for (std::size_t i = 0; i < count; ++i) {
    const float g = fused(s.weight_decay, weights[i], gradient[i]);
    new_weights[i] = fused(s.lr, g, weights[i]);
  }
}

void sgd_momentum(const SgdArrays& a, StepScalars s) noexcept {
  s.nesterov ? sgd_momentum_loop<true>(a, s) : sgd_momentum_loop<false>(a, s);
}

void adam(const AdamArrays& a, StepScalars s) noexcept {
  const bool decay = s.weight_decay != 0;
  const auto loop = s.fresh < 0.5F ? (decay ? adam_loop<true, true> : adam_loop<true, false>)
                                   : (decay ? adam_loop<false, true> : adam_loop<false, false>);
  loop(a.count, a.weights, a.gradient, a.mean, a.square, a.new_weights, a.new_mean, a.new_square, s);
}

void move_statistics(const StatisticsArrays& a, float momentum) noexcept {
  const auto fresh = static_cast<double>(momentum);
  const std::size_t count = a.count;
  for (std::size_t i = 0; i < count; ++i) {
    const auto mean = static_cast<double>(a.merged_mean[i]);
    // Rounding of the two sums can leave a tiny negative number where the variance is zero.
    const double var = std::max(0.0, static_cast<double>(a.merged_square[i]) - mean * mean);
    a.new_mean[i] = static_cast<float>((1 - fresh) * static_cast<double>(a.mean[i]) + fresh * mean);
    a.new_var[i] = static_cast<float>((1 - fresh) * static_cast<double>(a.var[i]) + fresh * var);
  }
}

double squares(std::span<const float> values) noexcept {
  double sum = 0;
  for (std::size_t first = 0; first < values.size(); first += kBlock)
    sum += block_squares(values.data() + first, std::min(kBlock, values.size() - first));
  return sum;
}

double sum_parts(std::span<float> out, std::span<const codec::Encoded> parts, float divisor, bool with_squares,
                 std::span<double> part_squares) {
  MOTLEY_ASSERT(!parts.empty() && (part_squares.empty() || part_squares.size() == parts.size()));
  double squares = 0;
  std::array<float, kBlock> floats{};
  for (std::size_t first = 0; first < out.size(); first += kBlock) {
    const std::size_t count = std::min(kBlock, out.size() - first);
    float* block = out.data() + first;
    parts[0].decode(first, {block, count});
    for (const auto& part : parts.subspan(1)) part.add_to(first, {block, count});
    for (std::size_t i = 0; i < count; ++i) block[i] /= divisor;
    if (with_squares) squares += sum_of_squares(block, count);
    if (part_squares.empty()) continue;
    // The parts are in the cache still.
    for (std::size_t i = 0; i < parts.size(); ++i) {
      parts[i].decode(first, std::span(floats).first(count));
      part_squares[i] += block_squares(floats.data(), count);
    }
    if (!with_squares) squares += block_squares(block, count);
  }
  return squares;
}

void scale(std::span<float> values, float factor) noexcept {
  for (float& value : values) value *= factor;
}

}  // namespace motley::ps

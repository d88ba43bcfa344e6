#pragma once
// Compiled once for each instruction set, so nothing here may be shared between them: no functions of the standard
// library, everything in an unnamed namespace. Plain loops that compilers turn into vector instructions, each operation
// a single IEEE 754 one.

#include "ps/loops.h"

namespace motley::ps {
namespace {

constexpr std::size_t kLanes = 256;

inline std::size_t least(std::size_t a, std::size_t b) noexcept { return a < b ? a : b; }

/// Of a block, in double, in a fixed number of lanes: a single running sum would not vectorise, and letting the
/// compiler reorder it would make processors disagree. So many lanes that the inner loop is long enough for compilers
/// to keep it a loop.
double sum_of_squares(const float* values, std::size_t count) noexcept {
  double lanes[kLanes] = {};
  for (std::size_t first = 0; first < count; first += kLanes) {
    const std::size_t width = least(kLanes, count - first);
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
  float lanes[kShortLanes] = {};
  for (std::size_t first = 0; first < count; first += kShortLanes) {
    const std::size_t width = least(kShortLanes, count - first);
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

// What is written may be what is read, element by element, and nothing else overlaps: no iteration needs another one.
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed"  // sanitizers keep it from vectorising
#define MOTLEY_EACH_BY_ITSELF _Pragma("clang loop vectorize(assume_safety)")
#else
#define MOTLEY_EACH_BY_ITSELF _Pragma("GCC ivdep")
#endif

template <bool kNesterov>
void sgd_momentum_loop(const SgdArrays& a, StepScalars s) noexcept {
  const float* weights = a.weights;
  const float* momentum = a.momentum;
  const float* gradient = a.gradient;
  float* new_weights = a.new_weights;
  float* new_momentum = a.new_momentum;
  const std::size_t count = a.count;
  MOTLEY_EACH_BY_ITSELF
  for (std::size_t i = 0; i < count; ++i) {
    const float g = fused(s.weight_decay, weights[i], gradient[i]);
    const float buffer = fused(s.fresh, g, momentum[i] * s.momentum);
    new_momentum[i] = buffer;
    const float direction = kNesterov ? fused(s.momentum, buffer, g) : buffer;
    new_weights[i] = fused(s.lr, direction, weights[i]);
  }
}

/// kNearStart: torch's lerp works from the nearer end. Choices are template parameters, because otherwise compilers do
/// not vectorise the loop.
template <bool kNearStart, bool kDecay>
void adam_loop(const AdamArrays& a, StepScalars s) noexcept {
  const float* weights = a.weights;
  const float* mean = a.mean;
  const float* square = a.square;
  const float* gradient = a.gradient;
  float* new_weights = a.new_weights;
  float* new_mean = a.new_mean;
  float* new_square = a.new_square;
  const std::size_t count = a.count;
  const float pull = kNearStart ? s.fresh : s.fresh - 1.0F;
  MOTLEY_EACH_BY_ITSELF
  for (std::size_t i = 0; i < count; ++i) {
    const float g = kDecay ? fused(s.weight_decay, weights[i], gradient[i]) : gradient[i];
    const float m = fused(pull, g - mean[i], kNearStart ? mean[i] : g);
    const float v = fused(s.fresh2 * g, g, square[i] * s.beta2);
    // Rounded correctly here; torch's sqrt, where it comes from MKL, is sometimes one unit in the last place off.
    const float denominator = __builtin_sqrtf(v) / s.correction + s.eps;
    new_mean[i] = m;
    new_square[i] = v;
    new_weights[i] = weights[i] * s.keep + s.lr * m / denominator;
  }
}

void adam_any(const AdamArrays& a, StepScalars s) noexcept {
  const bool decay = s.weight_decay != 0;
  const auto loop = s.fresh < 0.5F ? (decay ? adam_loop<true, true> : adam_loop<true, false>)
                                   : (decay ? adam_loop<false, true> : adam_loop<false, false>);
  loop(a, s);
}

void sgd_momentum_any(const SgdArrays& a, StepScalars s) noexcept {
  s.nesterov ? sgd_momentum_loop<true>(a, s) : sgd_momentum_loop<false>(a, s);
}

void sgd_loop(const SgdArrays& a, StepScalars s) noexcept {
  const float* weights = a.weights;
  const float* gradient = a.gradient;
  float* new_weights = a.new_weights;
  const std::size_t count = a.count;
  MOTLEY_EACH_BY_ITSELF
  for (std::size_t i = 0; i < count; ++i) {
    const float g = fused(s.weight_decay, weights[i], gradient[i]);
    new_weights[i] = fused(s.lr, g, weights[i]);
  }
}

#undef MOTLEY_EACH_BY_ITSELF

void scale_loop(float* values, std::size_t count, float factor) noexcept {
  for (std::size_t i = 0; i < count; ++i) values[i] *= factor;
}

void divide_loop(float* values, std::size_t count, float divisor) noexcept {
  for (std::size_t i = 0; i < count; ++i) values[i] /= divisor;
}

constexpr Loops make_loops(const char* name) noexcept {
  return {name, sgd_loop, sgd_momentum_any, adam_any, scale_loop, divide_loop, sum_of_squares, block_squares};
}

}  // namespace
}  // namespace motley::ps

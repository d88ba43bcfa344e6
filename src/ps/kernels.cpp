#include "ps/kernels.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/assert.h"
#include "machine/instruction_set.h"
#include "ps/loops.h"

namespace motley::ps {
namespace {

// A block is small enough for the first-level cache together with one part: adding many parts streams each part once.
static_assert(kBlock % codec::Encoded::kStride == 0);

#if defined(__x86_64__)
constexpr std::array<const Loops*, 3> kAll = {&kPortable, &kAvx2, &kAvx512};
#else
constexpr std::array<const Loops*, 1> kAll = {&kPortable};
#endif

const Loops& best() noexcept {
  static const Loops& chosen = *loops().back();
  return chosen;
}

}  // namespace

std::span<const Loops* const> loops() noexcept { return std::span(kAll).first(machine::instruction_sets()); }

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

void sgd(const SgdArrays& arrays, StepScalars scalars) noexcept { best().sgd(arrays, scalars); }
void sgd_momentum(const SgdArrays& arrays, StepScalars scalars) noexcept { best().sgd_momentum(arrays, scalars); }
void adam(const AdamArrays& arrays, StepScalars scalars) noexcept { best().adam(arrays, scalars); }

void move_statistics(const StatisticsArrays& a, float momentum) noexcept {
  const auto fresh = static_cast<double>(momentum);
  const std::size_t count = a.count;
  for (std::size_t i = 0; i < count; ++i) {
    const auto mean = static_cast<double>(a.mean_values[i]);
    // Rounding of the two sums can leave a tiny negative number where the variance is zero.
    const double var = std::max(0.0, static_cast<double>(a.var_values[i]) - mean * mean);
    a.mean_values[i] = static_cast<float>((1 - fresh) * static_cast<double>(a.mean[i]) + fresh * mean);
    a.var_values[i] = static_cast<float>((1 - fresh) * static_cast<double>(a.var[i]) + fresh * var);
  }
}

double squares(std::span<const float> values) noexcept {
  double sum = 0;
  for (std::size_t first = 0; first < values.size(); first += kBlock)
    sum += best().short_squares(values.data() + first, std::min(kBlock, values.size() - first));
  return sum;
}

void sum_parts(std::span<float> out, std::size_t first, std::span<const codec::Encoded> parts, float divisor,
               const BlockSquares& squares) {
  MOTLEY_ASSERT(!parts.empty() && first % kBlock == 0);
  std::array<float, kBlock> floats{};
  for (std::size_t block = 0; block * kBlock < out.size(); ++block) {
    const std::size_t begin = block * kBlock;
    const std::span<float> sum = out.subspan(begin, std::min(kBlock, out.size() - begin));
    parts[0].decode(first + begin, sum);
    for (const auto& part : parts.subspan(1)) part.add_to(first + begin, sum);
    best().divide(sum.data(), sum.size(), divisor);
    if (!squares.sums.empty())
      squares.sums[block] = (squares.exact ? best().squares : best().short_squares)(sum.data(), sum.size());
    if (squares.parts.empty()) continue;
    // The parts are in the cache still.
    for (std::size_t i = 0; i < parts.size(); ++i) {
      parts[i].decode(first + begin, std::span(floats).first(sum.size()));
      squares.parts[block * parts.size() + i] = best().short_squares(floats.data(), sum.size());
    }
  }
}

void scale(std::span<float> values, float factor) noexcept { best().scale(values.data(), values.size(), factor); }

}  // namespace motley::ps

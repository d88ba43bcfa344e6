#pragma once
// The loops over a tensor's elements. No state; arrays of one call never overlap, except that what an update writes may
// be what it reads: the new weights lie where the gradient was, and new state where the old was, so that a step needs
// no memory for both and writes no memory that it has not read.
//
// Scalars come by value: read through a reference, they would have to be loaded again after every store.
// Operation order is that of torch's single-tensor CPU path, so that results agree with it to the last bits.

#include <cstddef>
#include <span>

#include "codec/codec.h"
#include "motley/device_optimizer.h"
#include "ps/spec.h"

namespace motley::ps {

using motley::StepScalars;

/// `version` updates have been made; `lr` already has the schedule in it.
StepScalars step_scalars(OptimizerKind kind, const GroupSpec& group, double lr, std::uint64_t version);

struct SgdArrays {
  std::size_t count = 0;
  const float* weights = nullptr;
  const float* momentum = nullptr;
  const float* gradient = nullptr;
  float* new_weights = nullptr;  // may be the gradient's
  float* new_momentum = nullptr;
};
void sgd(const SgdArrays& arrays, StepScalars scalars) noexcept;  // momentum arrays unused
void sgd_momentum(const SgdArrays& arrays, StepScalars scalars) noexcept;

struct AdamArrays {
  std::size_t count = 0;
  const float* weights = nullptr;
  const float* mean = nullptr;    // exp_avg
  const float* square = nullptr;  // exp_avg_sq
  const float* gradient = nullptr;
  float* new_weights = nullptr;  // may be the gradient's
  float* new_mean = nullptr;
  float* new_square = nullptr;
};
void adam(const AdamArrays& arrays, StepScalars scalars) noexcept;  // and adamw

/// BatchNorm: `mean_values` = E[x], `var_values` = E[x²] over the batch; they become the moved running statistics.
struct StatisticsArrays {
  std::size_t count = 0;
  const float* mean = nullptr;
  const float* var = nullptr;
  float* mean_values = nullptr;
  float* var_values = nullptr;
};
void move_statistics(const StatisticsArrays& arrays, float momentum) noexcept;

/// Elements whose squares are summed by themselves. Such sums are added in order, whoever found them.
inline constexpr std::size_t kBlock = 4096;

/// What sum_parts() finds in each block; empty: not asked for.
struct BlockSquares {
  std::span<double> sums;  // the sum of squares of `out`: exact, or to about six digits
  bool exact = false;
  std::span<double> parts;  // those of each part, part by part within a block, to about six digits
};

/// out = (parts[0] + parts[1] + …) / divisor, added in this order, where `out` begins at the element `first` of the
/// parts. REQUIRES at least one part, first % kBlock == 0.
void sum_parts(std::span<float> out, std::size_t first, std::span<const codec::Encoded> parts, float divisor,
               const BlockSquares& squares);

/// The sum of squares, to about six digits.
double squares(std::span<const float> values) noexcept;

void scale(std::span<float> values, float factor) noexcept;

}  // namespace motley::ps

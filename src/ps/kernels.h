#pragma once
// The loops over a tensor's elements. No state; arrays of one call never overlap, except where said.
//
// Scalars come by value: read through a reference, they would have to be loaded again after every store.
// Operation order is that of torch's single-tensor CPU path, so that results agree with it to the last bits.

#include <cstddef>
#include <span>

#include "codec/codec.h"
#include "ps/spec.h"

namespace motley::ps {

/// A group's numbers at one step, as torch hands them to its kernels: computed in double, then rounded once.
struct StepScalars {
  float lr = 0;            // sgd: -lr; adam: -lr / bias_correction1
  float weight_decay = 0;  // L2; zero for adamw
  float keep = 1;          // adamw: 1 - lr * weight_decay
  float momentum = 0;
  float fresh = 1;  // sgd: 1 - dampening, or 1 at the first step; adam: 1 - beta1
  float beta2 = 0;
  float fresh2 = 0;      // 1 - beta2
  float correction = 1;  // sqrt(1 - beta2^step)
  float eps = 0;
  bool nesterov = false;
};

/// `version` updates have been made; `lr` already has the schedule in it.
StepScalars step_scalars(OptimizerKind kind, const GroupSpec& group, double lr, std::uint64_t version);

struct SgdArrays {
  std::size_t count = 0;
  const float* weights = nullptr;
  const float* gradient = nullptr;
  const float* momentum = nullptr;
  float* new_weights = nullptr;
  float* new_momentum = nullptr;
};
void sgd(const SgdArrays& arrays, StepScalars scalars) noexcept;  // momentum arrays unused
void sgd_momentum(const SgdArrays& arrays, StepScalars scalars) noexcept;

struct AdamArrays {
  std::size_t count = 0;
  const float* weights = nullptr;
  const float* gradient = nullptr;
  const float* mean = nullptr;    // exp_avg
  const float* square = nullptr;  // exp_avg_sq
  float* new_weights = nullptr;
  float* new_mean = nullptr;
  float* new_square = nullptr;
};
void adam(const AdamArrays& arrays, StepScalars scalars) noexcept;  // and adamw

/// BatchNorm: `merged_mean` = E[x], `merged_square` = E[x²] over the batch; moves the running statistics.
struct StatisticsArrays {
  std::size_t count = 0;
  const float* mean = nullptr;
  const float* var = nullptr;
  const float* merged_mean = nullptr;
  const float* merged_square = nullptr;
  float* new_mean = nullptr;
  float* new_var = nullptr;
};
void move_statistics(const StatisticsArrays& arrays, float momentum) noexcept;

/// out = (parts[0] + parts[1] + …) / divisor, added in this order; the sum of squares of `out` is returned if
/// `with_squares`, else 0. `part_squares`, where not empty, gets that of each part added, and that of `out` is returned
/// too: both to about six digits. REQUIRES at least one part, all as long as `out`.
double sum_parts(std::span<float> out, std::span<const codec::Encoded> parts, float divisor, bool with_squares,
                 std::span<double> part_squares = {});

/// The sum of squares, to about six digits.
double squares(std::span<const float> values) noexcept;

void scale(std::span<float> values, float factor) noexcept;

}  // namespace motley::ps

#pragma once
// The loops of kernels.h, compiled once for each instruction set from loops_body.h. All sets give the same bits.
// Private to ps; tests look at every set.

#include <cstddef>
#include <span>

#include "ps/kernels.h"

namespace motley::ps {

struct Loops {
  const char* name = nullptr;
  void (*sgd)(const SgdArrays& arrays, StepScalars scalars) noexcept = nullptr;
  void (*sgd_momentum)(const SgdArrays& arrays, StepScalars scalars) noexcept = nullptr;
  void (*adam)(const AdamArrays& arrays, StepScalars scalars) noexcept = nullptr;
  void (*scale)(float* values, std::size_t count, float factor) noexcept = nullptr;
  void (*divide)(float* values, std::size_t count, float divisor) noexcept = nullptr;
  /// The sum of squares of a block: in double; and, which is faster, to about six digits.
  double (*squares)(const float* values, std::size_t count) noexcept = nullptr;
  double (*short_squares)(const float* values, std::size_t count) noexcept = nullptr;
};

extern const Loops kPortable;  // on arm64 that is NEON, which every such processor has
#if defined(__x86_64__)
extern const Loops kAvx2;
extern const Loops kAvx512;
#endif

/// Those that this processor runs, the fastest last.
std::span<const Loops* const> loops() noexcept;

}  // namespace motley::ps

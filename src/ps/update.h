#pragma once
// One step of an optimizer, or of moving averages, on a chunk. Functions without state. Private to ps.

#include <span>

#include "motley/bytes.h"
#include "ps/chunks.h"
#include "ps/kernels.h"
#include "ps/spec.h"
#include "ps/stretches.h"

namespace motley::ps {

/// Turns the gradient in `values` into the new weights, and replaces the `states` vectors of state. `scalars`: by
/// group, of the open step. REQUIRES not OptimizerKind::outside.
void update_parameters(const OptimizerSpec& optimizer, std::span<const StepScalars> scalars, std::size_t states,
                       ChunkState& chunk, std::span<float> values, BufferPool& pool, const Stretches& stretches);
/// Turns the batch's means and variances in `values` into the running ones.
void update_statistics(const ChunkState& chunk, std::span<float> values);

}  // namespace motley::ps

#pragma once
// One step of an optimizer, or of moving averages, on a chunk. Functions without state. Private to ps.

#include <span>

#include "motley/bytes.h"
#include "ps/chunks.h"
#include "ps/kernels.h"
#include "ps/spec.h"
#include "ps/stretches.h"

namespace motley::ps {

/// The new weights, which may lie where the gradient is, and the new state, where the old one was unless somebody else
/// holds it. `scalars`: by group, of the open step. REQUIRES not OptimizerKind::outside.
void update_parameters(const OptimizerSpec& optimizer, std::span<const StepScalars> scalars, std::size_t states,
                       ChunkState& chunk, std::span<const float> gradient, std::span<float> new_weights,
                       BufferPool& pool, const Stretches& stretches);
/// Turns the batch's means and variances in `values` into the running ones.
void update_statistics(const ChunkState& chunk, std::span<float> values);

}  // namespace motley::ps

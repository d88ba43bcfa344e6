#pragma once
// One step of an optimizer, or of moving averages, on a chunk. Functions without state. Private to ps.

#include <span>

#include "motley/bytes.h"
#include "ps/chunks.h"
#include "ps/kernels.h"
#include "ps/spec.h"
#include "ps/stretches.h"

namespace motley::ps {

struct Update {
  const OptimizerSpec& optimizer;        // REQUIRES not OptimizerKind::outside
  std::span<const StepScalars> scalars;  // by group, of the open step
  std::size_t states;                    // vectors of the optimizer's state
  float clip;                            // what the gradient is multiplied with first; 1: it stays
};
/// The new weights, which may lie where the gradient is, and the new state, where the old one was unless somebody else
/// holds it. REQUIRES update.clip is 1, or the new weights lie where the gradient is.
void update_parameters(const Update& update, ChunkState& chunk, std::span<const float> gradient,
                       std::span<float> new_weights, BufferPool& pool, const Stretches& stretches);
/// Turns the batch's means and variances in `values` into the running ones.
void update_statistics(const ChunkState& chunk, std::span<float> values);

}  // namespace motley::ps

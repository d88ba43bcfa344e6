#pragma once
// What the plain loops that do a run again have in common: the model, and the gradient of some samples, all at once, at
// given weights.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "compute/task_loop.h"
#include "motley/bytes.h"
#include "motley/result.h"
#include "sim/computer.h"
#include "sim/scenario.h"

namespace motley::sim {

struct PlainSum {
  std::vector<std::vector<float>> gradients;  // by chunk
  double weight = 0, loss_sum = 0;
};
/// `weights`: of that version, by chunk. Errors: those of the model.
Result<PlainSum> plain_sum(compute::TaskLoop& loop, std::uint64_t seed, std::uint64_t version,
                           std::span<const std::uint64_t> samples, const std::vector<SharedBytes>& weights);

std::unique_ptr<softmax::SoftmaxRegression> model_of(const RunSetup& run, const Data& data);
/// By chunk.
std::vector<SharedBytes> weights_of(const ps::Server& server);

}  // namespace motley::sim

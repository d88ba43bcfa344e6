#include "sim/helper_replay.h"

#include <utility>

#include "base/assert.h"
#include "data/order.h"

namespace motley::sim {

HelperReplay::HelperReplay(const RunSetup& run, const Data& data)
    : run_(run), model_(model_of(run, data)), loop_(*model_), batches_(run.train_samples, run.global_batch) {
  Result<ps::Server> made = first_server(run, *model_);
  MOTLEY_ASSERT(made.ok());
  server_.emplace(std::move(*made));
  versions_[0] = server_->snapshot();
}

void HelperReplay::head_started(std::uint64_t version) {
  if (!versions_.contains(version)) return;  // the checks say so
  Result<ps::Server> made = make_server(run_, model_->layout(), versions_[version]);
  MOTLEY_ASSERT(made.ok());
  server_.emplace(std::move(*made));
}

PlainSum HelperReplay::compute(const engine::StepClosed& step, const engine::CommittedRange& range) {
  const StepRange pass = batches_.range(step.step);
  std::vector<std::uint64_t> indices(range.count);
  data::SampleOrder(run_.seed, pass.epoch, run_.train_samples).fill(pass.order_first + range.first, indices);
  const std::uint64_t version = step.step - (range.early ? 1 : 0);
  Result<PlainSum> sum = plain_sum(loop_, run_.seed, version, indices, versions_.at(version).weights);
  MOTLEY_ASSERT(sum.ok());
  return std::move(*sum);
}

Distance HelperReplay::closed(const engine::StepClosed& step, const std::vector<SharedBytes>& weights) {
  std::vector<PlainSum> sums;
  sums.reserve(step.ranges.size());
  double weight = 0;
  for (const engine::CommittedRange& range : step.ranges) {
    sums.push_back(compute(step, range));
    weight += sums.back().weight;
  }
  for (ChunkId chunk = 0; chunk < weights.size(); ++chunk) {
    std::vector<std::span<const float>> parts;
    parts.reserve(sums.size());
    for (const PlainSum& sum : sums) parts.emplace_back(sum.gradients[chunk]);
    server_->reduce(chunk, parts, weight, step.samples);
  }
  if (server_->clips()) server_->clip();
  std::vector<SharedBytes> after;
  after.reserve(weights.size());
  for (ChunkId chunk = 0; chunk < weights.size(); ++chunk) after.push_back(server_->apply(chunk));
  server_->finish_step();
  versions_[server_->version()] = server_->snapshot();
  return distance(weights, after);
}

}  // namespace motley::sim

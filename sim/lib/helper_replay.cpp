#include "sim/helper_replay.h"

#include <utility>

#include "base/assert.h"
#include "data/order.h"

namespace motley::sim {
namespace {

// The gradient of positions at the weights of one version.
class AtVersion final : public Weights, public Sink, public Stop {
 public:
  AtVersion(const std::vector<SharedBytes>& weights, std::uint64_t count) : weights_(weights), count_(count) {
    sums.resize(weights.size());
  }
  std::span<const float> get(ChunkId chunk) override { return weights_[chunk].floats(); }
  void progress(std::uint64_t) noexcept override {}
  void begin(std::uint64_t, double, double) noexcept override {}
  void ready(ChunkId chunk, std::span<const float> sum) noexcept override {
    sums[chunk].assign(sum.begin(), sum.end());
  }
  [[nodiscard]] std::uint64_t limit() const noexcept override { return count_; }

  std::vector<std::vector<float>> sums;

 private:
  const std::vector<SharedBytes>& weights_;
  std::uint64_t count_;
};

std::unique_ptr<softmax::SoftmaxRegression> regression_of(const RunSetup& run, const Data& data) {
  auto model = softmax::SoftmaxRegression::make(data.train, data.test, run.seed);
  MOTLEY_ASSERT(model.ok());
  return std::move(*model);
}

}  // namespace

HelperReplay::HelperReplay(const RunSetup& run, const Data& data)
    : run_(run), model_(regression_of(run, data)), loop_(*model_), batches_(run.train_samples, run.global_batch) {
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

HelperReplay::Sum HelperReplay::compute(const engine::StepClosed& step, const engine::CommittedRange& range) {
  const StepRange pass = batches_.range(step.step);
  std::vector<std::uint64_t> indices(range.count);
  data::SampleOrder(run_.seed, pass.epoch, run_.train_samples).fill(pass.order_first + range.first, indices);
  Task task;
  task.version = step.step - (range.early ? 1 : 0);
  task.indices = indices;
  task.micro_batch = static_cast<std::uint32_t>(range.count);
  task.seed = run_.seed;
  AtVersion all(versions_.at(task.version).weights, range.count);
  loop_.forget_weights();
  const Result<Outcome> outcome = loop_.run(task, all, all, all);
  MOTLEY_ASSERT(outcome.ok());
  return {std::move(all.sums), outcome->weight};
}

Distance HelperReplay::closed(const engine::StepClosed& step, const std::vector<SharedBytes>& weights) {
  std::vector<Sum> sums;
  double weight = 0;
  for (const engine::CommittedRange& range : step.ranges) {
    sums.push_back(compute(step, range));
    weight += sums.back().weight;
  }
  for (ChunkId chunk = 0; chunk < weights.size(); ++chunk) {
    std::vector<std::span<const float>> parts;
    parts.reserve(sums.size());
    for (const Sum& sum : sums) parts.emplace_back(sum.gradients[chunk]);
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

#include "sim/plain_sum.h"

#include <utility>

#include "base/assert.h"

namespace motley::sim {
namespace {

class Everything final : public Weights, public Sink, public Stop {
 public:
  Everything(const std::vector<SharedBytes>& weights, std::uint64_t count) : weights_(weights), count_(count) {
    gradients.resize(weights.size());
  }
  std::span<const float> get(ChunkId chunk) override { return weights_[chunk].floats(); }
  void progress(std::uint64_t) noexcept override {}
  void begin(std::uint64_t, double, double) noexcept override {}
  void ready(ChunkId chunk, std::span<const float> sum) noexcept override {
    gradients[chunk].assign(sum.begin(), sum.end());
  }
  [[nodiscard]] std::uint64_t limit() const noexcept override { return count_; }

  std::vector<std::vector<float>> gradients;

 private:
  const std::vector<SharedBytes>& weights_;
  std::uint64_t count_;
};

}  // namespace

Result<PlainSum> plain_sum(compute::TaskLoop& loop, std::uint64_t seed, std::uint64_t version,
                           std::span<const std::uint64_t> samples, const std::vector<SharedBytes>& weights) {
  Task task;
  task.version = version;
  task.indices = samples;
  task.micro_batch = static_cast<std::uint32_t>(samples.size());
  task.seed = seed;
  Everything all(weights, samples.size());
  loop.forget_weights();
  const Result<Outcome> outcome = loop.run(task, all, all, all);
  if (!outcome) return outcome.error();
  return PlainSum{std::move(all.gradients), outcome->weight, outcome->loss_sum};
}

std::unique_ptr<softmax::SoftmaxRegression> model_of(const RunSetup& run, const Data& data) {
  auto model = softmax::SoftmaxRegression::make(data.train, data.test, run.seed);
  MOTLEY_ASSERT(model.ok());
  return std::move(*model);
}

std::vector<SharedBytes> weights_of(const ps::Server& server) {
  std::vector<SharedBytes> chunks;
  const std::size_t count = server.layout().chunks().size();
  chunks.reserve(count);
  for (ChunkId chunk = 0; chunk < count; ++chunk) chunks.push_back(server.weights(chunk));
  return chunks;
}

}  // namespace motley::sim

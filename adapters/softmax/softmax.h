#pragma once
// Softmax regression without torch: the smallest model that can train, for the simulator, tests and examples. Entries
// "weight" [C, D] and "bias" [C]. One thread at a time; the data sets may be shared.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "motley/device_model.h"
#include "softmax/blobs.h"

namespace motley::softmax {

class SoftmaxRegression final : public DeviceModel {
 public:
  /// `test` may be null: then evaluate passes fail. `seed` is of the initial weights; 0 gives zeros. REQUIRES the same
  /// features and classes of both. Errors: input, where they make too many weights.
  static Result<std::unique_ptr<SoftmaxRegression>> make(std::shared_ptr<const Blobs> train,
                                                         std::shared_ptr<const Blobs> test, std::uint64_t seed);

  [[nodiscard]] const Layout& layout() const override { return layout_; }
  [[nodiscard]] Capabilities capabilities() const override;
  Status open(const Task& task, Arriving& weights) override;
  Status load(ChunkId first, std::span<const std::span<const float>> chunks) override;
  Status start() override;
  /// Gradients and losses are added sample by sample, so they do not depend on the micro-batch at all.
  Result<Forward> forward(const MicroBatch& samples) override;
  Status backward(Finals* /*finals*/) override { return {}; }  // forward() has done it
  Result<Sums> sums() override { return sums_; }
  Status finish(std::uint64_t /*count*/) override { return {}; }
  [[nodiscard]] std::span<const float> gradient(ChunkId chunk) const override;

  /// The flat vector of layout(): small gaussians for the weights, zeros for the biases.
  [[nodiscard]] std::vector<float> initial_weights() const;

 private:
  SoftmaxRegression(std::shared_ptr<const Blobs> train, std::shared_ptr<const Blobs> test, std::uint64_t seed,
                    Layout layout);
  /// One sample: its loss and whether its class is the most likely; `residual` becomes probabilities minus one-hot.
  struct Scored {
    double loss;
    bool correct;
  };
  Scored score(std::span<const float> x, std::size_t label);
  void add_gradient(std::span<const float> x);

  std::shared_ptr<const Blobs> train_, test_;
  std::uint64_t seed_;
  Layout layout_;
  std::size_t classes_ = 0, features_ = 0;
  std::size_t weight_at_ = 0, bias_at_ = 0;  // in the flat vector
  std::vector<float> weights_, gradient_;    // flat
  const Task* task_ = nullptr;
  Sums sums_;
  std::vector<float> residual_;
  std::vector<double> exponentials_;
};

}  // namespace motley::softmax

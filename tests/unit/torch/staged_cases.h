#pragma once
// Models of every kind with made-up samples, for tests of the path of accelerators.

#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "fixtures.h"

namespace motley::torch_adapter {

inline constexpr std::uint64_t kStaged = 120;

struct Case {
  std::string name;
  ModelSpec spec;
  std::shared_ptr<const data::Dataset> dataset;
};

inline Case cnn() {
  const std::vector<std::int64_t> shape = {1, 28, 28};
  return {"cnn", spec_of("fashion-cnn", shape, 10), std::make_shared<FakeDataset>(kStaged, shape, 10)};
}
inline Case mlp_with_values() {
  Case made{"mlp", spec_of("mlp", {6}, 3),
            std::make_shared<FakeDataset>(kStaged, std::vector<std::int64_t>{6}, 0, /*target_elements=*/3)};
  made.spec.loss = "mse";
  made.spec.hidden = {8};
  return made;
}
inline Case batch_norm_and_dropout() {
  const std::vector<std::int64_t> shape = {1, 8, 8};
  Case made{"convnet", spec_of("torchscript", shape, 5), std::make_shared<FakeDataset>(kStaged, shape, 5)};
  std::ifstream in(MOTLEY_TORCHSCRIPT_MODELS "/convnet.pt", std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  made.spec.file = SharedBytes::copy_of(std::as_bytes(std::span(text)));
  made.spec.group_samples = 8;
  return made;
}

inline constexpr std::int64_t kTextBlock = 16;

class FakeText final : public FakeDataset {
 public:
  FakeText() : FakeDataset(kStaged, {kTextBlock}, 256, kTextBlock) {}
  void gather(std::span<const std::uint64_t> indices, std::span<float> x) const override { fill(indices, 0, x.data()); }
  void gather_classes(std::span<const std::uint64_t> indices, std::span<std::int64_t> y) const override {
    fill(indices, 1, y.data());
  }

 private:
  template <class T>
  static void fill(std::span<const std::uint64_t> indices, std::uint64_t ahead, T* out) {
    for (const std::uint64_t index : indices)
      for (std::uint64_t i = 0; i < kTextBlock; ++i) *out++ = static_cast<T>((index * 31 + (i + ahead) * 7) % 256);
  }
};

inline Case gpt() {
  Case made{"gpt", spec_of("gpt-mini", {kTextBlock}, 256), std::make_shared<FakeText>()};
  made.spec.gpt = {kTextBlock, 2, 4, 64};
  made.spec.targets = kTextBlock;
  return made;
}

}  // namespace motley::torch_adapter

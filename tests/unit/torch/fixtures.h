#pragma once
// What a model is driven with in these tests. Torch-free.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/philox.h"
#include "compute/task_loop.h"
#include "data/dataset.h"
#include "torch/torch_adapter.h"

namespace motley::torch_adapter {

/// Made-up samples from a fixed seed; classes, or values when `classes` is 0.
class FakeDataset : public data::Dataset {
 public:
  FakeDataset(std::uint64_t size, std::vector<std::int64_t> shape, std::uint64_t classes,
              std::uint64_t target_elements = 1)
      : size_(size), shape_(std::move(shape)), classes_(classes), target_elements_(target_elements) {
    for (const std::int64_t n : shape_) elements_ *= static_cast<std::size_t>(n);
    Philox random(7);
    for (std::size_t i = 0; i < size * elements_; ++i) x_.push_back(static_cast<float>(random.gaussian()));
    for (std::size_t i = 0; i < size; ++i) y_.push_back(static_cast<std::int64_t>(random.below(classes ? classes : 1)));
    for (std::size_t i = 0; i < size * target_elements; ++i) values_.push_back(static_cast<float>(random.gaussian()));
  }
  std::uint64_t size() const override { return size_; }
  const std::vector<std::int64_t>& sample_shape() const override { return shape_; }
  data::TargetKind target_kind() const override {
    return classes_ > 0 ? data::TargetKind::classes : data::TargetKind::values;
  }
  std::uint64_t target_elements() const override { return target_elements_; }
  std::uint64_t classes() const override { return classes_; }
  const std::string& fingerprint() const override { return fingerprint_; }
  void gather(std::span<const std::uint64_t> indices, std::span<float> x) const override {
    copy(x_, elements_, indices, x.data());
  }
  void gather_classes(std::span<const std::uint64_t> indices, std::span<std::int64_t> y) const override {
    copy(y_, 1, indices, y.data());
  }
  void gather_values(std::span<const std::uint64_t> indices, std::span<float> y) const override {
    copy(values_, target_elements_, indices, y.data());
  }

 private:
  template <class T>
  static void copy(const std::vector<T>& from, std::size_t width, std::span<const std::uint64_t> indices, T* out) {
    for (const std::uint64_t index : indices) {
      for (std::size_t i = 0; i < width; ++i) *out++ = from[index * width + i];
    }
  }
  std::uint64_t size_;
  std::vector<std::int64_t> shape_;
  std::uint64_t classes_, target_elements_;
  std::size_t elements_ = 1;
  std::vector<float> x_, values_;
  std::vector<std::int64_t> y_;
  std::string fingerprint_ = "fake";
};

class ChunkWeights : public Weights {
 public:
  explicit ChunkWeights(std::vector<SharedBytes> chunks) : chunks_(std::move(chunks)) {}
  std::span<const float> get(ChunkId chunk) override {
    ++gets;
    return chunks_[chunk].floats();
  }
  int gets = 0;

 private:
  std::vector<SharedBytes> chunks_;
};

/// Keeps everything, in the flat order of the layout.
class RecordingSink : public Sink {
 public:
  explicit RecordingSink(const Layout& layout)
      : flat(layout.flat_elements()), times_ready(layout.chunks().size()), layout_(layout) {}
  void progress(std::uint64_t done) noexcept override {
    reported.push_back(done);
    if (on_progress) on_progress(done);
  }
  void begin(std::uint64_t count, double weight, double loss_sum) noexcept override {
    ++begun;
    if (!order.empty()) ready_before_begin = true;
    outcome = {count, weight, loss_sum, 0};
  }
  void ready(ChunkId chunk, std::span<const float> gradient) noexcept override {
    ++times_ready[chunk];
    order.push_back(chunk);
    std::copy(gradient.begin(), gradient.end(),
              flat.begin() + static_cast<std::ptrdiff_t>(layout_.chunks()[chunk].offset));
  }
  std::vector<float> flat;
  std::vector<int> times_ready;
  std::vector<ChunkId> order;
  std::vector<std::uint64_t> reported;
  std::function<void(std::uint64_t)> on_progress;
  int begun = 0;
  bool ready_before_begin = false;
  Outcome outcome;

 private:
  const Layout& layout_;
};

class FixedStop : public Stop {
 public:
  explicit FixedStop(std::uint64_t samples) : at(samples) {}
  std::uint64_t limit() const noexcept override { return at; }
  std::uint64_t at;
};

/// A model, and the loop that drives it.
struct Driven {
  explicit Driven(std::unique_ptr<DeviceModel> made) : model(std::move(made)), loop(*model) {}
  std::unique_ptr<DeviceModel> model;
  compute::TaskLoop loop;
};

inline std::unique_ptr<Driven> driven(const ModelSpec& spec, const Options& options,
                                      const std::shared_ptr<const data::Dataset>& train,
                                      const std::shared_ptr<const data::Dataset>& test) {
  return std::make_unique<Driven>(std::move(make_device_model(spec, options, train, test)).value());
}

inline std::vector<std::uint64_t> some_indices(std::uint64_t first, std::uint64_t count, std::uint64_t size) {
  std::vector<std::uint64_t> indices;
  for (std::uint64_t i = first; i < first + count; ++i) indices.push_back((i * 37 + 11) % size);
  return indices;
}

inline ModelSpec spec_of(const std::string& kind, std::vector<std::int64_t> shape, std::uint64_t outputs) {
  ModelSpec spec;
  spec.kind = kind;
  spec.sample_shape = std::move(shape);
  spec.outputs = outputs;
  spec.seed = 5;
  return spec;
}

inline Options one_thread() {
  Options options;
  options.threads = 1;
  return options;
}

}  // namespace motley::torch_adapter

#pragma once
// Fashion-MNIST and a network for it, as Motley sees them: the same as the recipe fashion-cnn of the Python package, in
// whose runs a machine with this program can take part.

#include <torch/nn.h>
#include <zlib.h>

#include <cmath>
#include <map>
#include <numbers>
#include <stdexcept>

#include "motley/model.h"

/// What every machine of the run is started with, in the recipe's words.
struct Arguments {
  std::vector<std::string> words;            // as they were typed
  std::map<std::string, std::string> named;  // "--samples": "6000"

  std::string get(const std::string& name, const std::string& otherwise) const {
    return named.contains(name) ? named.at(name) : otherwise;
  }
  std::int64_t samples() const { return std::stoll(get("--samples", "60000")); }
  std::int64_t epochs() const { return std::stoll(get("--epochs", "3")); }
  std::int64_t batch() const { return std::stoll(get("--batch-size", "256")); }
  std::uint64_t seed() const { return std::stoull(get("--seed", "1")); }
  double lr() const { return std::stod(get("--lr", "2e-3")); }
};

struct Images {
  at::Tensor pixels, labels;  // uint8 [n, 1, 28, 28], int64 [n]
};

/// The first `shape[0]` samples of an IDX file, packed by gzip or not. Throws.
inline at::Tensor read_idx(const std::string& path, std::vector<std::int64_t> shape) {
  std::array<unsigned char, 16> head{};
  const unsigned dimensions = shape.size() == 1 ? 1 : 3, head_bytes = 4 + 4 * dimensions;  // without the one channel
  gzFile file = gzopen((path + ".gz").c_str(), "rb");
  if (file == nullptr) file = gzopen(path.c_str(), "rb");
  if (file == nullptr || gzread(file, head.data(), head_bytes) != int(head_bytes) || head[3] != dimensions)
    throw std::runtime_error(path + ": expected an IDX file, packed by gzip or not");
  shape[0] = std::min<std::int64_t>(shape[0], (head[4] << 24) + (head[5] << 16) + (head[6] << 8) + head[7]);
  at::Tensor bytes = at::empty(shape, at::kByte);
  const int count = gzread(file, bytes.data_ptr(), unsigned(bytes.numel()));
  gzclose(file);
  if (count != bytes.numel()) throw std::runtime_error(path + ": ends before its samples do");
  return bytes;
}

inline Images read_images(const Arguments& arguments, const std::string& part) {
  const std::string path = arguments.get("--data", "/usr/share/datasets/fashion-mnist") + "/" + part;
  return {read_idx(path + "-images-idx3-ubyte", {arguments.samples(), 1, 28, 28}),
          read_idx(path + "-labels-idx1-ubyte", {arguments.samples()}).to(at::kLong)};
}

struct Cnn : torch::nn::Module {
  torch::nn::Conv2d conv1 = register_module("conv1", torch::nn::Conv2d(1, 32, 3));
  torch::nn::Conv2d conv2 = register_module("conv2", torch::nn::Conv2d(32, 64, 3));
  torch::nn::Linear fc1 = register_module("fc1", torch::nn::Linear(1600, 128));
  torch::nn::Linear fc2 = register_module("fc2", torch::nn::Linear(128, 10));

  at::Tensor forward(const at::Tensor& pixels) {
    at::Tensor x = (pixels.to(at::kFloat) / 255 - 0.2860) / 0.3530;
    x = at::max_pool2d(conv1(x), 2).relu();
    x = at::max_pool2d(conv2(x), 2).relu();
    return fc2(fc1(x.flatten(1)).relu());
  }
};

/// The network on a processor. Its parameters and their gradients are views into two flat vectors in the order of the
/// layout: Motley reads and writes them where they are.
class CnnOnCpu final : public motley::DeviceModel {
 public:
  CnnOnCpu(const motley::Layout& layout, Images train, Images test, unsigned threads)
      : layout_(layout), train_(std::move(train)), test_(std::move(test)), threads_(threads) {
    weights_ = at::zeros({std::int64_t(layout.flat_elements())}), gradient_ = at::zeros_like(weights_);
    std::vector<at::Tensor> parameters = net_.parameters();
    for (std::size_t i = 0; i < layout.placements().size(); ++i) {
      const motley::Placement& place = layout.placements()[i];
      at::Tensor& parameter = parameters[place.entry];
      const auto part = [&](const at::Tensor& flat) {
        return flat.narrow(0, std::int64_t(place.offset), parameter.numel()).view(parameter.sizes());
      };
      parameter.set_data(part(weights_));
      parameter.mutable_grad() = part(gradient_);
      torch::autograd::impl::set_post_acc_grad_hooks(parameter, std::make_unique<Hook>(*this, i));
    }
  }
  const motley::Layout& layout() const override { return layout_; }
  motley::Capabilities capabilities() const override { return {"cpu", "libtorch", 256}; }
  motley::Flow flow() const override { return motley::Flow::overlapped; }
  motley::Status open(const motley::Task& task, motley::Arriving&) override {
    task_ = &task;
    if (threads_ > 0) at::set_num_threads(int(threads_));
    return {};
  }
  motley::Status load(motley::ChunkId first, std::span<const std::span<const float>> chunks) override {
    float* to = weights_.data_ptr<float>() + layout_.chunks()[first].offset;
    for (const std::span<const float> values : chunks) to = std::copy(values.begin(), values.end(), to);
    return {};
  }
  motley::Status start() override {
    gradient_.zero_();
    sums_ = {.scores = std::vector<double>(evaluates() ? 1 : 0)};
    return {};
  }
  motley::Result<motley::Forward> forward(const motley::MicroBatch& samples) override try {
    const Images& images = evaluates() ? test_ : train_;
    const at::AutoGradMode grad(!evaluates());
    const at::Tensor numbers = torch::tensor(std::vector<std::int64_t>(samples.indices.begin(), samples.indices.end()));
    const at::Tensor labels = images.labels.index_select(0, numbers);
    const at::Tensor logits = net_.forward(images.pixels.index_select(0, numbers));
    loss_ = at::cross_entropy_loss(logits, labels, {}, at::Reduction::Sum);
    sums_.weight += double(labels.numel());
    sums_.loss_sum += loss_.item<double>();
    if (evaluates()) sums_.scores[0] += logits.argmax(1).eq(labels).sum().item<double>();
    return motley::Forward::computed;
  } catch (const std::exception& error) {  // torch's; errors of Motley are values
    return motley::Error{motley::ErrorCode::internal, error.what(), ""};
  }
  motley::Status backward(motley::Finals* finals) override try {
    finals_ = finals;
    loss_.backward();
    return {};
  } catch (const std::exception& error) {
    return motley::Error{motley::ErrorCode::internal, error.what(), ""};
  }
  motley::Result<motley::Sums> sums() override { return sums_; }
  motley::Status finish(std::uint64_t) override { return {}; }
  std::span<const float> gradient(motley::ChunkId chunk) const override {
    const motley::Chunk& place = layout_.chunks()[chunk];
    return {gradient_.const_data_ptr<float>() + place.offset, place.elements};
  }

 private:
  /// Of a parameter, whose gradient is added up now: its chunk may travel while the backward pass goes on.
  struct Hook final : torch::autograd::PostAccumulateGradHook {
    Hook(CnnOnCpu& of, std::size_t number) : model(of), placement(number) {}
    void operator()(const at::Tensor&) override {
      if (model.finals_ != nullptr) model.finals_->placement_final(placement);
    }
    CnnOnCpu& model;
    std::size_t placement;
  };
  bool evaluates() const { return task_->kind == motley::PassKind::evaluate; }
  const motley::Layout& layout_;
  Images train_, test_;
  unsigned threads_;
  Cnn net_;
  at::Tensor weights_, gradient_, loss_;
  const motley::Task* task_ = nullptr;
  motley::Sums sums_;
  motley::Finals* finals_ = nullptr;
};

class FashionModel final : public motley::Model {
 public:
  explicit FashionModel(const Arguments& arguments)
      : arguments_(arguments), train_(read_images(arguments, "train")), test_(read_images(arguments, "t10k")) {
    torch::manual_seed(arguments.seed());
    std::vector<motley::LayoutEntry> entries;
    for (const auto& named : Cnn().named_parameters()) {
      initial_.push_back(named.value().detach());
      entries.push_back({.name = named.key(), .shape = named.value().sizes().vec()});
    }
    layout_ = std::move(motley::Layout::make(std::move(entries)).value());
  }
  const motley::Layout& layout() const override { return layout_; }
  motley::Result<std::vector<float>> initial_weights() override {
    std::vector<float> flat(layout_.flat_elements());
    for (const motley::Placement& place : layout_.placements())
      std::copy_n(initial_[place.entry].const_data_ptr<float>(), place.elements, flat.data() + place.offset);
    return flat;
  }
  motley::Optimizer optimizer() const override {
    motley::Optimizer adam{.kind = motley::OptimizerKind::adam, .groups = {{.lr = arguments_.lr()}}};
    const auto steps = arguments_.epochs() * ((train_.labels.size(0) + arguments_.batch() - 1) / arguments_.batch());
    for (std::int64_t step = 0; step <= steps; ++step)  // torch's CosineAnnealingLR
      adam.factors.push_back((1 + std::cos(std::numbers::pi * double(step) / double(steps))) / 2);
    return adam;
  }
  motley::Samples train_samples() const override { return samples_of(train_); }
  motley::Samples test_samples() const override { return samples_of(test_); }
  std::vector<std::string> scores() const override { return {"accuracy"}; }
  std::vector<std::string> arguments() const override { return arguments_.words; }
  motley::Result<std::unique_ptr<motley::DeviceModel>> device(const std::string&, unsigned threads) override {
    return std::unique_ptr<motley::DeviceModel>(std::make_unique<CnnOnCpu>(layout_, train_, test_, threads));
  }

 private:
  /// In the words of a Python script; the hash is for machines with this program.
  static motley::Samples samples_of(const Images& images) {
    const auto* bytes = static_cast<const unsigned char*>(images.pixels.const_data_ptr());
    return {std::uint64_t(images.labels.size(0)), "(uint8 [1, 28, 28], int64 [])",
            crc32_z(0, bytes, std::size_t(images.pixels.numel()))};
  }

  Arguments arguments_;
  Images train_, test_;
  motley::Layout layout_;
  std::vector<at::Tensor> initial_;
};

// The fashion-cnn as a plain libtorch training loop, and the same work through the adapter and the task loop: what one
// local worker is measured against. Prints one JSON object a mode; the modes take turns, so that a busy machine slows
// both.
//   cnn_loop --data URI [--mode plain|adapter|both] [--memory kept|usual] [--device cpu|cuda:0|mps] [--batch N]
//            [--micro N] [--threads N] [--steps N] [--rounds N]
// --memory kept: freed memory of large tensors is used again, as the adapter always has it; usual: torch's own way,
// which gives it back to the system. A process can have one only, so `usual` is for --mode plain.
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "compute/task_loop.h"
#include "data/dataset.h"
#include "torch/cpu_memory.h"
#include "torch/torch_adapter.h"

namespace {

using namespace motley;
using Clock = std::chrono::steady_clock;
constexpr std::size_t kPixels = 28 * 28;
constexpr std::size_t kIdleBytesMax = std::size_t{4} << 30;

using Images = std::shared_ptr<const data::Dataset>;

struct Settings {
  std::string mode = "both", device = "cpu", data, memory = "kept";
  std::int64_t batch = 256, micro = 0, threads = 1, steps = 20, rounds = 5;
};

Images open_images(const std::string& uri) {
  data::OpenOptions options;
  options.normalisation = {0.2860F, 0.3530F};  // of the recipe fashion-cnn
  Result<Images> images = data::open_dataset(uri, "train", options);
  if (!images) {
    std::fprintf(stderr, "%s; try: %s\n", images.error().message.c_str(), images.error().hint.c_str());
    std::exit(1);
  }
  return *images;
}

/// Scattered over the data set, as a shuffled epoch's are.
std::vector<std::uint64_t> indices_of(std::int64_t step, std::int64_t batch, std::uint64_t samples) {
  constexpr std::uint64_t kStride = 7919;
  std::vector<std::uint64_t> indices;
  for (std::int64_t i = 0; i < batch; ++i)
    indices.push_back(static_cast<std::uint64_t>(step * batch + i) * kStride % samples);
  return indices;
}

/// What anybody would write: modules, a tensor with all images, SGD with momentum.
class PlainLoop {
 public:
  PlainLoop(const Settings& settings, const data::Dataset& images) : settings_(settings), device_(settings.device) {
    model_->push_back(torch::nn::Conv2d(1, 32, 3));
    model_->push_back(torch::nn::ReLU());
    model_->push_back(torch::nn::MaxPool2d(2));
    model_->push_back(torch::nn::Conv2d(32, 64, 3));
    model_->push_back(torch::nn::ReLU());
    model_->push_back(torch::nn::MaxPool2d(2));
    model_->push_back(torch::nn::Flatten());
    model_->push_back(torch::nn::Linear(1600, 128));
    model_->push_back(torch::nn::ReLU());
    model_->push_back(torch::nn::Linear(128, 10));
    model_->to(device_);
    optimizer_ =
        std::make_unique<torch::optim::SGD>(model_->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));
    std::vector<std::uint64_t> all(images.size());
    std::iota(all.begin(), all.end(), std::uint64_t{0});
    const auto samples = static_cast<std::int64_t>(all.size());
    x_ = at::empty({samples, 1, 28, 28});
    y_ = at::empty({samples}, at::kLong);
    images.gather(all, {x_.data_ptr<float>(), all.size() * kPixels});
    images.gather_classes(all, {y_.data_ptr<std::int64_t>(), all.size()});
  }
  void step(std::int64_t number) {
    const auto samples = static_cast<std::uint64_t>(x_.size(0));
    const std::vector<std::uint64_t> indices = indices_of(number, settings_.batch, samples);
    at::Tensor index = at::empty({settings_.batch}, at::kLong);
    std::memcpy(index.data_ptr(), indices.data(), indices.size() * sizeof(std::uint64_t));
    const at::Tensor x = x_.index_select(0, index).to(device_), y = y_.index_select(0, index).to(device_);
    optimizer_->zero_grad();
    const at::Tensor loss = at::cross_entropy_loss(model_->forward(x), y);
    loss.backward();
    optimizer_->step();
    loss_ = loss.item<double>();
  }

 private:
  Settings settings_;
  at::Device device_;
  torch::nn::Sequential model_;
  std::unique_ptr<torch::optim::SGD> optimizer_;
  at::Tensor x_, y_;
  double loss_ = 0;
};

/// The adapter, with an update as the parameter server makes it in place of the optimizer.
class AdapterLoop : private Weights, private Sink, private Stop {
 public:
  AdapterLoop(const Settings& settings, const Images& images) : settings_(settings), samples_(images->size()) {
    torch_adapter::ModelSpec spec;
    spec.kind = "fashion-cnn";
    spec.sample_shape = {1, 28, 28};
    spec.outputs = 10;
    torch_adapter::Options options;
    options.device = settings.device;
    options.threads = static_cast<unsigned>(settings.threads);
    auto model = torch_adapter::make_device_model(spec, options, images, nullptr);
    auto state = torch_adapter::initial_state(spec);
    if (!model || !state) {
      std::fprintf(stderr, "%s\n", (model ? state.error() : model.error()).message.c_str());
      std::exit(1);
    }
    model_ = std::move(*model);
    loop_ = std::make_unique<compute::TaskLoop>(*model_);
    for (const SharedBytes& chunk : state->weights) {
      weights_.emplace_back(chunk.floats().begin(), chunk.floats().end());
      momentum_.emplace_back(weights_.back().size());
      gradients_.emplace_back(weights_.back().size());
    }
    micro_ = settings.micro > 0 ? static_cast<std::uint32_t>(settings.micro) : model_->capabilities().micro_batch;
  }
  void step(std::int64_t number) {
    const std::vector<std::uint64_t> indices = indices_of(number, settings_.batch, samples_);
    Task task;
    task.version = version_;
    task.indices = indices;
    task.micro_batch = micro_;
    const Result<Outcome> outcome = loop_->run(task, *this, *this, *this);
    if (!outcome) {
      std::fprintf(stderr, "%s\n", outcome.error().message.c_str());
      std::exit(1);
    }
    const float scale = 1.0F / static_cast<float>(outcome->weight);
    for (std::size_t c = 0; c < weights_.size(); ++c) {
      for (std::size_t i = 0; i < weights_[c].size(); ++i) {
        momentum_[c][i] = 0.9F * momentum_[c][i] + scale * gradients_[c][i];
        weights_[c][i] -= 0.01F * momentum_[c][i];
      }
    }
    ++version_;
  }
  [[nodiscard]] std::uint32_t micro() const { return micro_; }

 private:
  std::span<const float> get(ChunkId chunk) override { return weights_[chunk]; }
  void progress(std::uint64_t) noexcept override {}
  void begin(std::uint64_t, double, double) noexcept override {}
  void ready(ChunkId chunk, std::span<const float> sum) noexcept override {
    std::copy(sum.begin(), sum.end(), gradients_[chunk].begin());
  }
  std::uint64_t limit() const noexcept override { return static_cast<std::uint64_t>(settings_.batch); }

  Settings settings_;
  std::uint64_t samples_;
  std::unique_ptr<DeviceModel> model_;
  std::unique_ptr<compute::TaskLoop> loop_;
  std::vector<std::vector<float>> weights_, momentum_, gradients_;
  std::uint64_t version_ = 0;
  std::uint32_t micro_ = 0;
};

/// Samples a second of the clock, and a second of processor time: the latter also tells on a busy machine.
struct Rate {
  double wall = 0, processor = 0;
};

template <class Loop>
Rate rate_of(Loop& loop, const Settings& settings, std::int64_t first) {
  const std::clock_t processor_start = std::clock();
  const Clock::time_point start = Clock::now();
  for (std::int64_t i = 0; i < settings.steps; ++i) loop.step(first + i);
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const double processor = static_cast<double>(std::clock() - processor_start) / CLOCKS_PER_SEC;
  const auto samples = static_cast<double>(settings.steps * settings.batch);
  return {samples / seconds, samples / processor};
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

void print(const char* mode, const Settings& settings, std::int64_t micro, const std::vector<Rate>& rates) {
  std::vector<double> wall, processor;
  for (const Rate& rate : rates) {
    wall.push_back(rate.wall);
    processor.push_back(rate.processor);
  }
  std::printf(
      "{\"bench\":\"cnn_loop\",\"mode\":\"%s\",\"memory\":\"%s\",\"device\":\"%s\",\"batch\":%lld,\"micro_batch\":%lld,"
      "\"threads\":%lld,"
      "\"samples_per_s\":%.1f,\"samples_per_processor_s\":%.1f,\"rounds\":%lld}\n",
      mode, settings.memory.c_str(), settings.device.c_str(), static_cast<long long>(settings.batch),
      static_cast<long long>(micro), static_cast<long long>(settings.threads), median(wall), median(processor),
      static_cast<long long>(settings.rounds));
}

Settings parse(int argc, char** argv) {
  Settings settings;
  const std::map<std::string, std::int64_t*> numbers = {{"--batch", &settings.batch},
                                                        {"--micro", &settings.micro},
                                                        {"--threads", &settings.threads},
                                                        {"--steps", &settings.steps},
                                                        {"--rounds", &settings.rounds}};
  const std::map<std::string, std::string*> words = {{"--mode", &settings.mode},
                                                     {"--device", &settings.device},
                                                     {"--data", &settings.data},
                                                     {"--memory", &settings.memory}};
  for (int i = 1; i + 1 < argc; i += 2) {
    const auto number = numbers.find(argv[i]);
    const auto word = words.find(argv[i]);
    if (number != numbers.end()) {
      *number->second = std::max(1L, std::atol(argv[i + 1]));
    } else if (word != words.end()) {
      *word->second = argv[i + 1];
    } else {
      std::fprintf(stderr, "unknown option %s; they are at the top of bench/cnn_loop.cpp\n", argv[i]);
      std::exit(2);
    }
  }
  const bool usual = settings.memory == "usual" && settings.mode == "plain";
  if (settings.data.empty() || (settings.memory != "kept" && !usual)) {
    std::fprintf(stderr, "expected --data, and --memory kept (or usual, with --mode plain)\n");
    std::exit(2);
  }
  return settings;
}

}  // namespace

int main(int argc, char** argv) {
  const Settings settings = parse(argc, argv);
  const Images images = open_images(settings.data);
  if (settings.memory == "kept") torch_adapter::reuse_cpu_memory(kIdleBytesMax);
  at::set_num_threads(static_cast<int>(settings.threads));
  // The adapter computes in full fp32, so the plain loop must too: on CUDA convolutions would use TF32 otherwise.
  at::globalContext().setAllowTF32CuDNN(false);
  at::globalContext().setAllowTF32CuBLAS(false);
  const bool plain = settings.mode != "adapter", adapter = settings.mode != "plain";
  std::unique_ptr<PlainLoop> plain_loop;
  std::unique_ptr<AdapterLoop> adapter_loop;
  if (plain) plain_loop = std::make_unique<PlainLoop>(settings, *images);
  if (adapter) adapter_loop = std::make_unique<AdapterLoop>(settings, images);
  std::vector<Rate> plain_rates, adapter_rates;
  std::vector<double> ratios, processor_ratios;
  for (std::int64_t round = -1; round < settings.rounds; ++round) {  // the first one warms up
    const std::int64_t first = (round + 1) * settings.steps;
    const Rate a = plain ? rate_of(*plain_loop, settings, first) : Rate();
    const Rate b = adapter ? rate_of(*adapter_loop, settings, first) : Rate();
    if (round < 0) continue;
    plain_rates.push_back(a);
    adapter_rates.push_back(b);
    ratios.push_back(b.wall / a.wall);
    processor_ratios.push_back(b.processor / a.processor);
  }
  if (plain) print("plain", settings, settings.batch, plain_rates);
  if (adapter) print("adapter", settings, adapter_loop->micro(), adapter_rates);
  if (plain && adapter) {
    std::printf("{\"bench\":\"cnn_loop\",\"adapter_over_plain\":%.4f,\"adapter_over_plain_processor\":%.4f}\n",
                median(ratios), median(processor_ratios));
  }
  return 0;
}

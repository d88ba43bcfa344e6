// DeviceModel on libtorch: micro-batches into one flat gradient, of which the backward pass says what is final.
#include <ATen/detail/MPSHooksInterface.h>

#include <algorithm>
#include <utility>

#include "base/fault_words.h"
#include "base/philox.h"
#include "machine/error_words.h"
#include "machine/processor.h"
#include "torch/canary.h"
#include "torch/cpu_memory.h"
#include "torch/device_memory.h"
#include "torch/devices.h"
#include "torch/flat_model.h"
#include "torch/generators.h"
#include "torch/guard.h"
#include "torch/sample_reader.h"
#include "torch/torch_device_optimizer.h"

namespace motley::torch_adapter {
namespace {

constexpr double kPassSecondsOfMps = 0.5;  // work of some seconds is given up while the screen is in use

class TorchModel final : public DeviceModel {
 public:
  TorchModel(InspectedModel model, const at::Device& device, Loss loss, std::uint32_t group_samples,
             std::shared_ptr<const data::Dataset> train, std::shared_ptr<const data::Dataset> test, unsigned threads,
             bool staged, Capabilities capabilities)
      : model_(std::move(model), device, staged),
        device_optimizer_(model_),
        loss_(loss),
        group_samples_(group_samples),
        threads_(threads),
        capabilities_(std::move(capabilities)) {
    if (train) train_.emplace(std::move(train), device, model_.staged());
    if (test) test_.emplace(std::move(test), device, model_.staged());
    if (!device.is_mps()) return;
    canary_.emplace(device);
    words_.emplace([](std::string_view line) { return fault_in(line).has_value(); });
  }

  const Layout& layout() const override { return model_.layout(); }
  Capabilities capabilities() const override { return capabilities_; }
  MemoryUse memory(std::uint64_t for_others) override {
    const Result<MemoryUse> use =
        guarded("looking at the memory of " + capabilities_.device,
                [&]() -> Result<MemoryUse> { return memory_of(model_.device(), for_others); });
    return use ? *use : MemoryUse{};  // a device that does not tell is taken as it is
  }

  Care care() const override { return canary_ ? Care{2, kPassSecondsOfMps, true} : Care{}; }
  std::optional<Fault> fault() override {
    if (!canary_) return std::nullopt;
    std::optional<Fault> found;
    const Status asked = on_device([&] {
      if (auto text = canary_->fault()) found = Fault{Fault::Kind::stale, *std::move(text)};
    });
    if (!asked) return Fault{Fault::Kind::stale, asked.error().message};
    // What the driver says of its own, it has said by the time that the device was waited for.
    if (const std::optional<std::string> words = words_->take()) return fault_in(*words);
    return found;
  }

  void empty_caches() override {
    if (!canary_) return;
    static_cast<void>(guarded("emptying the caches of " + capabilities_.device, []() -> Status {
      at::detail::getMPSHooks().emptyCache();
      return {};
    }));
  }

  // What an optimizer on such a device left out could not be computed again.
  DeviceOptimizer* device_optimizer() override { return model_.staged() && !canary_ ? &device_optimizer_ : nullptr; }
  Flow flow() const override { return model_.staged() ? Flow::behind : Flow::overlapped; }
  std::uint32_t group(PassKind) const override { return model_.acts_on_groups() ? group_samples_ : 0; }
  std::uint32_t at_once(const Task& task) const override {
    return model_.acts_on_groups() ? group_samples_ : task.micro_batch;
  }
  bool keeps_weights() const override { return model_.keeps_weights(); }
  bool starts_early(const Task&) const override { return true; }

  Status open(const Task& task, Arriving& weights) override {
    task_ = &task;
    sums_ = {};
    model_.await(task.resident ? nullptr : &weights);
    if (!reader()) {
      return Error{ErrorCode::input,
                   std::string("asked for ") + (trains() ? "training" : "evaluation") + " without a data set for it",
                   ""};
    }
    return on_device([&] {
      if (model_.on_cpu()) at::set_num_threads(static_cast<int>(threads_));
      if (canary_) canary_->begin();
    });
  }

  Status load(ChunkId first, std::span<const std::span<const float>> chunks) override {
    return on_device([&] { model_.load(first, chunks); });
  }

  Status start() override {
    return on_device(
        [&] { trains() ? model_.start_training(task_->kind == PassKind::probe) : model_.start_evaluation(); });
  }

  Result<Forward> forward(const MicroBatch& samples) override {
    const Status done = on_device([&] {
      const at::AutoGradMode grad(trains());
      const SampleReader::Batch batch = reader()->read(repeated(samples));
      repeats_ = samples.repeats;
      const at::Tensor output = run(batch.x, task_->first + samples.at);
      losses_ = losses_of(loss_, output, batch.target);
      if (!trains() && loss_ != Loss::mse)
        sums_.correct +=
            static_cast<std::uint64_t>(output.argmax(-1).eq(batch.target).sum().item<std::int64_t>()) / repeats_;
      if (canary_) canary_->mark();
      // A device that is behind is given the backward pass before anybody waits for the losses, so that it does not run
      // dry.
      if (!trains() || !model_.staged()) add(losses_);
    });
    if (!done) return done.error();
    return Forward::computed;
  }

  Status backward(Finals* finals) override {
    if (finals) model_.on_final([finals](std::size_t placement) { finals->placement_final(placement); });
    const Status done = on_device([&] {
      const at::AutoGradMode grad(true);
      const at::Tensor losses = std::exchange(losses_, at::Tensor());
      // Not sum(), which would hand down an expanded gradient: some kernels of MPS read these wrongly.
      losses.backward(at::full_like(losses, 1.0 / repeats_));
      if (canary_) canary_->mark();
      if (model_.staged()) add(losses);
    });
    model_.on_final({});
    return done;
  }

  Result<Sums> sums() override {
    if (task_->resident) device_optimizer_.set_loss_sum(std::exchange(sums_.loss_sum, 0));
    return sums_;
  }

  Status finish(std::uint64_t) override {
    if (!gives_gradient(task_->kind) || task_->resident) return {};
    return on_device([&] { model_.fetch_gradients(); });
  }

  std::span<const float> gradient(ChunkId chunk) const override { return model_.gradient(chunk); }

  void close() override {
    losses_ = at::Tensor();
    model_.await(nullptr);
  }

 private:
  template <class Action>
  Status on_device(const Action& action) {
    return guarded("computing " + std::to_string(task_->indices.size()) + " samples on " + capabilities_.device,
                   [&]() -> Status {
                     const c10::OptionalDeviceGuard here = guard_of(model_.device());
                     try {
                       action();
                     } catch (const FlatModel::Abandoned&) {
                       return Error{ErrorCode::internal, "the weights did not come", ""};
                     }
                     return {};
                   });
  }

  at::Tensor run(const at::Tensor& x, std::uint64_t first) {
    std::optional<Seeded> seeded;
    if (trains() && model_.draws_random_numbers())
      seeded.emplace(model_.device(), mixed_seed(task_->seed, task_->version, first));
    return model_.forward(x);
  }

  void add(const at::Tensor& losses) {
    // Summed on the CPU: MPS has no float64.
    sums_.loss_sum += losses.detach().to(at::kCPU).to(at::kDouble).sum().item<double>() / repeats_;
    sums_.weight += static_cast<double>(losses.numel()) / repeats_;
  }

  /// The samples, each as often as it goes through.
  std::span<const std::uint64_t> repeated(const MicroBatch& samples) {
    if (samples.repeats == 1) return samples.indices;
    repeated_.clear();
    for (std::uint32_t i = 0; i < samples.repeats; ++i)
      repeated_.insert(repeated_.end(), samples.indices.begin(), samples.indices.end());
    return repeated_;
  }

  [[nodiscard]] bool trains() const { return task_->kind != PassKind::evaluate; }
  std::optional<SampleReader>& reader() { return trains() ? train_ : test_; }

  FlatModel model_;
  TorchDeviceOptimizer device_optimizer_;
  Loss loss_;
  std::uint32_t group_samples_;
  unsigned threads_;
  Capabilities capabilities_;
  std::optional<SampleReader> train_, test_;
  // Of the task.
  const Task* task_ = nullptr;
  Sums sums_;
  at::Tensor losses_;          // of the newest forward pass
  std::uint32_t repeats_ = 1;  // of its samples
  std::vector<std::uint64_t> repeated_;
  std::optional<Canary> canary_;              // where the device is to be taken care of
  std::optional<machine::ErrorWords> words_;  // of its driver
};

void make_deterministic() {
  at::globalContext().setDeterministicCuDNN(true);
  at::globalContext().setBenchmarkCuDNN(false);
  at::globalContext().setAllowTF32CuDNN(false);
  at::globalContext().setAllowTF32CuBLAS(false);
}

}  // namespace

Result<std::unique_ptr<DeviceModel>> make_device_model(const ModelSpec& model, const Options& options,
                                                       std::shared_ptr<const data::Dataset> train,
                                                       std::shared_ptr<const data::Dataset> test) {
  return guarded("building the model '" + model.kind + "'", [&]() -> Result<std::unique_ptr<DeviceModel>> {
    const Result<at::Device> device = find_device(options.device);
    if (!device) return device.error();
    const Result<Loss> loss = find_loss(model.loss);
    if (!loss) return loss.error();
    for (const auto& [dataset, part] : {std::pair(train, "training"), std::pair(test, "test")}) {
      const Status fits = dataset ? builtin::check_data(model, *dataset, part) : Status();
      if (!fits) return fits.error();
    }
    const c10::OptionalDeviceGuard here = guard_of(*device);
    make_deterministic();
    fit_cpu_memory();  // the model is built there, whatever the device
    Result<InspectedModel> inspected = inspect(model);
    if (!inspected) return inspected.error();
    const bool cpu = device->is_cpu();
    const unsigned threads = options.threads > 0 ? options.threads : machine::allowed_processors();
    Capabilities capabilities{options.device == "cuda" ? "cuda:0" : options.device, options.device, 0};
    for (const DeviceInfo& info : devices()) {
      if (info.name == capabilities.device) capabilities.description = info.description;
    }
    if (cpu) capabilities.description += ", " + std::to_string(threads) + (threads == 1 ? " thread" : " threads");
    capabilities.micro_batch = builtin::micro_batch(model, !cpu);
    if (options.micro_batch > 0) capabilities.micro_batch = options.micro_batch;
    if (inspected->acts_on_groups) capabilities.micro_batch = model.group_samples;
    return std::unique_ptr<DeviceModel>(std::make_unique<TorchModel>(
        std::move(inspected).value(), *device, *loss, model.group_samples, std::move(train), std::move(test), threads,
        options.staged, std::move(capabilities)));
  });
}

}  // namespace motley::torch_adapter

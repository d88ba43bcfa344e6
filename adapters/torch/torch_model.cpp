// Computation on libtorch: micro-batches into one flat gradient, chunks handed over as the backward pass finishes them.
#include <algorithm>

#include "base/assert.h"
#include "base/philox.h"
#include "tensor/chunk_publisher.h"
#include "torch/cpu_memory.h"
#include "torch/device_memory.h"
#include "torch/devices.h"
#include "torch/flat_model.h"
#include "torch/generators.h"
#include "torch/guard.h"
#include "torch/sample_reader.h"
#include "torch/torch_residence.h"

namespace motley::torch_adapter {
namespace {

// Large enough that a step is not ruled by start-up costs of kernels, small enough for any card and for CPU caches.
constexpr std::uint32_t kMicroBatchCpu = 256;
constexpr std::uint32_t kMicroBatchAccelerator = 2048;
// Of samples with many targets fewer go at once: activations grow with the targets.
constexpr std::uint64_t kTargetsCpu = 4096;
constexpr std::uint64_t kTargetsAccelerator = 16384;

class TorchComputation final : public Computation {
 public:
  TorchComputation(InspectedModel model, const at::Device& device, Loss loss, std::uint32_t group_samples,
                   std::shared_ptr<const data::Dataset> train, std::shared_ptr<const data::Dataset> test,
                   unsigned threads, bool staged, Capabilities capabilities)
      : model_(std::move(model), device, staged),
        residence_(model_),
        publisher_(model_.layout(), [this](ChunkId chunk) { return model_.gradient(chunk); }),
        loss_(loss),
        group_samples_(group_samples),
        threads_(threads),
        capabilities_(std::move(capabilities)) {
    if (train) train_.emplace(std::move(train), device, model_.staged());
    if (test) test_.emplace(std::move(test), device, model_.staged());
  }

  const Layout& layout() const override { return model_.layout(); }
  Capabilities capabilities() const override { return capabilities_; }
  MemoryUse memory(std::uint64_t for_others) override {
    const Result<MemoryUse> use =
        guarded("looking at the memory of " + capabilities_.device,
                [&]() -> Result<MemoryUse> { return memory_of(model_.device(), for_others); });
    return use ? *use : MemoryUse{};  // a device that does not tell is taken as it is
  }

  ps::Residence* residence() override { return model_.staged() ? &residence_ : nullptr; }

  Result<Outcome> run(const Task& task, Weights& weights, Sink& sink, const Stop& stop) override {
    return guarded("computing " + std::to_string(task.indices.size()) + " samples on " + capabilities_.device,
                   [&]() -> Result<Outcome> {
                     model_.on_final({});  // a task that failed may have left one
                     const c10::OptionalDeviceGuard here = guard_of(model_.device());
                     if (model_.on_cpu()) at::set_num_threads(static_cast<int>(threads_));
                     try {
                       if (!task.resident) model_.load(task.version, weights);
                       return task.kind == PassKind::evaluate ? evaluate(task, sink, stop) : train(task, sink, stop);
                     } catch (const FlatModel::Abandoned&) {
                       return Outcome{};
                     }
                   });
  }

 private:
  Result<Outcome> train(const Task& task, Sink& sink, const Stop& stop) {
    if (!train_) return missing("training");
    const at::AutoGradMode grad(true);
    const bool contributes = task.kind == PassKind::train, publishes = contributes && !task.resident;
    Outcome outcome{.micro_batch = micro_batch(task)};
    bool begun = false;
    const auto begin = [&] {
      begun = true;
      if (!contributes) return;
      sink.begin(outcome.count, outcome.weight, outcome.loss_sum);
      if (publishes) publisher_.start(sink);
    };
    model_.start_training();
    while (!begun) {
      const std::uint64_t limit = limit_of(task, stop);
      if (limit == 0) return Outcome{};
      if (limit <= outcome.count) break;  // trimmed to what is done
      const std::uint64_t count = next_count(task, outcome.count, limit);
      if (!stop.claim(outcome.count + count)) continue;
      const std::uint64_t at = task.at(outcome.count, count);
      const SampleReader::Batch batch = train_->read(task.indices.subspan(at, count));
      const auto forward = [&] {
        std::optional<Seeded> seeded;
        if (model_.draws_random_numbers()) {
          seeded.emplace(model_.device(), mixed_seed(task.seed, task.version, task.first + at));
        }
        return model_.forward(batch.x);
      };
      const at::Tensor losses = losses_of(loss_, forward(), batch.target);
      if (model_.staged()) {
        losses.sum().backward();  // queued before add() waits for the losses, so that the device does not run dry
        add(losses, count, outcome);
        if (is_last(task, stop, outcome.count)) begin();
      } else {
        add(losses, count, outcome);
        if (is_last(task, stop, outcome.count)) {
          begin();
          if (publishes) model_.on_final([this](std::size_t placement) { publisher_.placement_final(placement); });
        }
        losses.sum().backward();
      }
      if (!begun) sink.progress(outcome.count);
    }
    model_.on_final({});
    const bool all_reported = !begun;
    if (!begun) begin();
    if (publishes) {
      model_.fetch_gradients();
      publisher_.finish();
    }
    if (!all_reported) sink.progress(outcome.count);
    return outcome;
  }

  Result<Outcome> evaluate(const Task& task, Sink& sink, const Stop& stop) {
    if (!test_) return missing("evaluation");
    const at::NoGradGuard no_grad;
    Outcome outcome{.micro_batch = micro_batch(task)};
    model_.load_all();
    model_.start_evaluation();
    while (outcome.count < task.indices.size()) {
      const std::uint64_t limit = limit_of(task, stop);
      if (limit == 0) return Outcome{};
      if (limit <= outcome.count) break;
      const std::uint64_t count = std::min<std::uint64_t>(micro_batch(task), limit - outcome.count);
      if (!stop.claim(outcome.count + count)) continue;
      const SampleReader::Batch batch = test_->read(task.indices.subspan(outcome.count, count));
      const at::Tensor output = model_.forward(batch.x);
      add(losses_of(loss_, output, batch.target), count, outcome);
      if (loss_ != Loss::mse) {
        outcome.correct += static_cast<std::uint64_t>(output.argmax(-1).eq(batch.target).sum().item<std::int64_t>());
      }
      sink.progress(outcome.count);
    }
    return outcome;
  }

  static void add(const at::Tensor& losses, std::uint64_t count, Outcome& outcome) {
    // Summed on the CPU: MPS has no float64.
    outcome.loss_sum += losses.detach().to(at::kCPU).to(at::kDouble).sum().item<double>();
    outcome.weight += static_cast<double>(losses.numel());
    outcome.count += count;
  }

  [[nodiscard]] std::uint64_t limit_of(const Task& task, const Stop& stop) const {
    const std::uint64_t limit = std::min<std::uint64_t>(stop.limit(), task.indices.size());
    if (!model_.acts_on_groups() || limit == task.indices.size()) return limit;
    // Groups are never cut, so that of a limit inside of one the whole groups are left.
    const std::uint64_t partial = task.from_end ? partial_group(task) : 0;
    return limit < partial ? 0 : partial + (limit - partial) / group_samples_ * group_samples_;
  }
  /// Samples at the end of the task that make no whole group: the pass may end with such a one.
  [[nodiscard]] std::uint64_t partial_group(const Task& task) const { return task.indices.size() % group_samples_; }
  /// Asked after the forward pass: the limit may have been raised meanwhile.
  [[nodiscard]] bool is_last(const Task& task, const Stop& stop, std::uint64_t done) const {
    const std::uint64_t limit = limit_of(task, stop);
    return limit > 0 && done >= limit;
  }
  [[nodiscard]] std::uint32_t micro_batch(const Task& task) const {
    MOTLEY_ASSERT(task.micro_batch > 0);
    return model_.acts_on_groups() ? group_samples_ : task.micro_batch;
  }
  /// The odd part goes first: the chunks of the gradient leave during the last backward pass, and hide behind it the
  /// better the longer it is.
  [[nodiscard]] std::uint64_t next_count(const Task& task, std::uint64_t done, std::uint64_t limit) const {
    const std::uint64_t left = limit - done;
    const std::uint64_t whole = micro_batch(task);
    const std::uint64_t odd = left % whole;
    if (!model_.acts_on_groups()) return left > whole && odd > 0 ? odd : std::min(whole, left);
    const std::uint64_t partial = task.from_end && done == 0 ? partial_group(task) : 0;
    return partial > 0 ? partial : std::min(whole, left);
  }
  static Error missing(const std::string& what) {
    return {ErrorCode::internal, "asked for " + what + " without a data set for it", ""};
  }

  FlatModel model_;
  TorchResidence residence_;
  ChunkPublisher publisher_;
  Loss loss_;
  std::uint32_t group_samples_;
  unsigned threads_;
  Capabilities capabilities_;
  std::optional<SampleReader> train_, test_;
};

Status check_data(const ModelSpec& spec, Loss loss, const data::Dataset& dataset, const std::string& part) {
  const auto wrong = [&](const std::string& what) {
    return Error{ErrorCode::mismatch, "the " + part + " data do not fit the model: " + what,
                 "check data.uri, data.test_uri and model.loss"};
  };
  if (dataset.sample_shape() != spec.sample_shape) return wrong("samples have another shape than the training data");
  const bool classes = loss != Loss::mse;
  if (classes != (dataset.target_kind() == data::TargetKind::classes)) {
    return wrong("loss '" + spec.loss + "' needs " + (classes ? "classes" : "values") + " as targets");
  }
  if (classes && dataset.target_elements() != spec.targets) {
    return wrong(std::to_string(dataset.target_elements()) + " targets a sample, expected " +
                 std::to_string(spec.targets));
  }
  const std::uint64_t found = classes ? dataset.classes() : dataset.target_elements();
  if (classes ? found > spec.outputs : found != spec.outputs) {
    return wrong(std::to_string(found) + (classes ? " classes" : " values a sample") + ", expected " +
                 std::to_string(spec.outputs));
  }
  return {};
}

void make_deterministic() {
  at::globalContext().setDeterministicCuDNN(true);
  at::globalContext().setBenchmarkCuDNN(false);
  at::globalContext().setAllowTF32CuDNN(false);
  at::globalContext().setAllowTF32CuBLAS(false);
}

}  // namespace

Result<std::unique_ptr<Computation>> make_computation(const ModelSpec& model, const Options& options,
                                                      std::shared_ptr<const data::Dataset> train,
                                                      std::shared_ptr<const data::Dataset> test) {
  return guarded("building the model '" + model.kind + "'", [&]() -> Result<std::unique_ptr<Computation>> {
    const Result<at::Device> device = find_device(options.device);
    if (!device) return device.error();
    const Result<Loss> loss = find_loss(model.loss);
    if (!loss) return loss.error();
    for (const auto& [dataset, part] : {std::pair(train, "training"), std::pair(test, "test")}) {
      const Status fits = dataset ? check_data(model, *loss, *dataset, part) : Status();
      if (!fits) return fits.error();
    }
    const c10::OptionalDeviceGuard here = guard_of(*device);
    make_deterministic();
    fit_cpu_memory();  // the model is built there, whatever the device
    Result<InspectedModel> inspected = inspect(model);
    if (!inspected) return inspected.error();
    const bool cpu = device->is_cpu();
    const unsigned threads = options.threads > 0 ? options.threads : usable_processors();
    Capabilities capabilities{options.device == "cuda" ? "cuda:0" : options.device, options.device, 0};
    for (const DeviceInfo& info : devices()) {
      if (info.name == capabilities.device) capabilities.description = info.description;
    }
    if (cpu) capabilities.description += ", " + std::to_string(threads) + (threads == 1 ? " thread" : " threads");
    const std::uint64_t targets = std::max<std::uint64_t>(1, model.targets);
    const std::uint64_t most = cpu ? kTargetsCpu / targets : kTargetsAccelerator / targets;
    capabilities.micro_batch = cpu ? kMicroBatchCpu : kMicroBatchAccelerator;
    capabilities.micro_batch = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(most, 1, capabilities.micro_batch));
    if (options.micro_batch > 0) capabilities.micro_batch = options.micro_batch;
    if (inspected->acts_on_groups) capabilities.micro_batch = model.group_samples;
    return std::unique_ptr<Computation>(std::make_unique<TorchComputation>(
        std::move(inspected).value(), *device, *loss, model.group_samples, std::move(train), std::move(test), threads,
        options.staged, std::move(capabilities)));
  });
}

}  // namespace motley::torch_adapter

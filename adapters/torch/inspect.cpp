// The layout of a model. Which parameters get a gradient, how BatchNorm averages and what else changes is observed, not
// read from the code: it works for every way a model can be written.
#include "torch/inspect.h"

#include <cmath>
#include <cstring>
#include <optional>
#include <sstream>

#include "torch/generators.h"

namespace motley::torch_adapter {
namespace {

constexpr std::int64_t kTrialSamples = 2;  // BatchNorm refuses one
constexpr std::uint64_t kTrialSeed = 1;
constexpr double kTrialStatistic = 65536;  // far above what a batch gives, so that rounding does not blur the momentum
constexpr std::int64_t kTrialCount = 99;   // num_batches_tracked in the trial that looks for cumulative averages

bool ends_with_part(const std::string& name, std::string_view part) {
  return name.ends_with(part) && (name.size() == part.size() || name[name.size() - part.size() - 1] == '.');
}

std::optional<DType> dtype_of(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return DType::f32;
    case at::kHalf:
      return DType::f16;
    case at::kBFloat16:
      return DType::bf16;
    case at::kDouble:
      return DType::f64;
    case at::kLong:
      return DType::i64;
    case at::kInt:
      return DType::i32;
    case at::kByte:
      return DType::u8;
    case at::kBool:
      return DType::boolean;
    default:
      return std::nullopt;
  }
}

std::uint64_t hash_of(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().to(at::kCPU).contiguous();
  return builtin::content_hash({static_cast<const std::byte*>(flat.const_data_ptr()), flat.nbytes()});
}

bool same_bytes(const at::Tensor& a, const at::Tensor& b) {
  return a.nbytes() == b.nbytes() && std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

/// The last line of what torch says; above it are traces of its own sources.
std::string reason_of(const std::exception& e) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&e);
  std::string text = torch_error != nullptr ? torch_error->what_without_backtrace() : e.what();
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

/// Runs the model on a few made-up samples, always the same.
class Trial {
 public:
  Trial(Model& model, const ModelSpec& spec, Loss loss) : model_(model), spec_(spec), loss_(loss) {
    std::vector<std::int64_t> shape = {kTrialSamples};
    shape.insert(shape.end(), spec.sample_shape.begin(), spec.sample_shape.end());
    {
      const Seeded seeded(at::kCPU, kTrialSeed);
      x_ = at::rand(shape);
    }
    for (const NamedTensor& named : model.tensors()) {
      saved_.push_back(named.buffer ? named.tensor.detach().clone() : at::Tensor());
    }
  }

  at::Tensor forward() {
    const Seeded seeded(at::kCPU, kTrialSeed);
    return model_.forward(x_);
  }

  /// Checks that samples and targets fit, and leaves gradients behind.
  Status backward() {
    at::Tensor output;
    try {
      output = forward();
    } catch (const c10::OutOfMemoryError&) {
      throw;
    } catch (const std::exception& e) {
      std::ostringstream shape;
      shape << x_.sizes();
      return Error{ErrorCode::mismatch, "the model does not take samples of " + shape.str() + ": " + reason_of(e),
                   "check that the model was made for this data set, and takes float32"};
    }
    const auto outputs = static_cast<std::int64_t>(spec_.outputs);
    const bool classes = loss_ != Loss::mse;
    std::vector<std::int64_t> shape = {kTrialSamples};
    if (spec_.targets > 1) shape.push_back(static_cast<std::int64_t>(spec_.targets));
    const std::string wanted = shape.size() == 1 ? "[2, C]" : "[2, " + std::to_string(spec_.targets) + ", C]";
    const auto leading = static_cast<std::int64_t>(shape.size());
    const bool fits = classes ? output.dim() == leading + 1 && output.size(leading) >= outputs &&
                                    output.sizes().slice(0, shape.size()) == at::IntArrayRef(shape)
                              : output.numel() == kTrialSamples * outputs;
    if (!fits) {
      std::ostringstream found;
      found << output.sizes();
      return Error{ErrorCode::mismatch,
                   "the model gives an output of " + found.str() + " for " + std::to_string(kTrialSamples) +
                       " samples; loss '" + spec_.loss + "' needs " +
                       (classes ? wanted + " with C at least " : "2 times ") + std::to_string(outputs),
                   "check model.loss, and that the model was made for this data set"};
    }
    if (!output.requires_grad()) {
      return Error{ErrorCode::input, "no parameter of the model has a gradient, so there is nothing to train",
                   "save the model with parameters that require gradients"};
    }
    const at::Tensor target = classes ? at::zeros(shape, at::kLong) : at::zeros_like(output);
    const at::Tensor losses = losses_of(loss_, output, target);
    losses.backward(at::ones_like(losses));
    return {};
  }

  void restore_buffers() {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < saved_.size(); ++i) {
      if (saved_[i].defined()) model_.tensors()[i].tensor.copy_(saved_[i]);
    }
  }
  [[nodiscard]] bool changed(std::size_t i) const { return !same_bytes(model_.tensors()[i].tensor, saved_[i]); }

 private:
  Model& model_;
  const ModelSpec& spec_;
  Loss loss_;
  at::Tensor x_;
  std::vector<at::Tensor> saved_;
};

/// The momentum of each running statistic: what share of the old value is gone after one forward pass.
class Momentum {
 public:
  Momentum(Model& model, Trial& trial) {
    const at::NoGradGuard no_grad;
    const std::vector<at::Tensor> zero = observe(model, trial, 0, 0);
    const std::vector<at::Tensor> one = observe(model, trial, kTrialStatistic, 0);
    const std::vector<at::Tensor> late = observe(model, trial, 0, kTrialCount);
    for (std::size_t i = 0; i < zero.size(); ++i) {
      if (!zero[i].defined() || zero[i].numel() == 0) {
        values_.push_back(0);
        continue;
      }
      const double kept = (one[i] - zero[i]).to(at::kDouble).mean().item<double>() / kTrialStatistic;
      // Six digits: what float rounding leaves exact, so that all machines find the same number.
      values_.push_back(static_cast<float>(std::round((1 - kept) * 1e6) / 1e6));
      if (!at::allclose(zero[i], late[i])) cumulative_ = model.tensors()[i].name;
    }
    trial.restore_buffers();
  }
  [[nodiscard]] float of(std::size_t i) const { return values_[i]; }
  /// A statistic that averages over all batches ever seen, which no moving average can follow; or empty.
  [[nodiscard]] const std::string& cumulative() const { return cumulative_; }

 private:
  static std::vector<at::Tensor> observe(Model& model, Trial& trial, double start, std::int64_t count) {
    for (const NamedTensor& named : model.tensors()) {
      if (!named.buffer) continue;
      if (ends_with_part(named.name, "num_batches_tracked")) named.tensor.fill_(count);
      if (ends_with_part(named.name, "running_mean") || ends_with_part(named.name, "running_var")) {
        named.tensor.fill_(start);
      }
    }
    trial.forward();
    std::vector<at::Tensor> found;
    for (const NamedTensor& named : model.tensors()) {
      const bool statistic = ends_with_part(named.name, "running_mean") || ends_with_part(named.name, "running_var");
      found.push_back(named.buffer && statistic ? named.tensor.detach().clone() : at::Tensor());
    }
    return found;
  }
  std::vector<float> values_;
  std::string cumulative_;
};

bool has_statistics(const std::vector<NamedTensor>& tensors) {
  for (const NamedTensor& named : tensors) {
    if (named.buffer && ends_with_part(named.name, "running_mean")) return true;
  }
  return false;
}

TensorKind kind_of(const std::vector<NamedTensor>& all, std::size_t i, bool updates_statistics) {
  const NamedTensor& named = all[i];
  if (!named.alias_of.empty()) return TensorKind::alias;
  if (!named.buffer) return named.tensor.grad().defined() ? TensorKind::trained : TensorKind::frozen;
  if (!updates_statistics) return TensorKind::frozen;
  const bool next_is_var = i + 1 < all.size() && ends_with_part(all[i + 1].name, "running_var");
  if (ends_with_part(named.name, "running_mean") && next_is_var) return TensorKind::running_mean;
  const bool after_mean = i > 0 && ends_with_part(all[i - 1].name, "running_mean");
  if (ends_with_part(named.name, "running_var") && after_mean) return TensorKind::running_var;
  if (ends_with_part(named.name, "num_batches_tracked")) return TensorKind::counter;
  return TensorKind::frozen;
}

Result<std::vector<LayoutEntry>> entries_of(const ModelSpec& spec, Model& model, Trial& trial) {
  const std::vector<NamedTensor>& all = model.tensors();
  std::vector<bool> changed(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) changed[i] = all[i].buffer && trial.changed(i);
  trial.restore_buffers();
  std::optional<Momentum> momentum;
  if (has_statistics(all)) momentum.emplace(model, trial);
  if (momentum && !momentum->cumulative().empty()) {
    return Error{ErrorCode::input,
                 momentum->cumulative() + " is a cumulative average (momentum=None), which is not supported",
                 "give the BatchNorm layers a momentum, e.g. 0.1"};
  }
  std::vector<LayoutEntry> entries;
  for (std::size_t i = 0; i < all.size(); ++i) {
    LayoutEntry entry;
    entry.name = all[i].name;
    entry.shape = all[i].tensor.sizes().vec();
    const std::optional<DType> dtype = dtype_of(all[i].tensor.scalar_type());
    if (!dtype) {
      return Error{
          ErrorCode::input,
          entry.name + " has the type " + c10::toString(all[i].tensor.scalar_type()) + ", which is not supported",
          "save the model in float32"};
    }
    entry.dtype = *dtype;
    entry.alias_of = all[i].alias_of;
    const std::size_t pair = i > 0 && ends_with_part(entry.name, "running_var") ? i - 1 : i;
    entry.kind = kind_of(all, i, changed[pair] || ends_with_part(entry.name, "num_batches_tracked"));
    entry.group = builtin::group_of(spec, entry.name);
    if (entry.kind == TensorKind::running_mean || entry.kind == TensorKind::running_var) {
      entry.momentum = momentum->of(pair);
      if (entry.momentum <= 0) {
        return Error{ErrorCode::input, entry.name + " changes, but not as a moving average",
                     "use torch's BatchNorm layers"};
      }
    }
    if (entry.kind == TensorKind::frozen) {
      entry.content_hash = hash_of(all[i].tensor);
      if (changed[i]) {
        return Error{ErrorCode::input,
                     "the forward pass changes the buffer " + entry.name + "; only BatchNorm's statistics may change",
                     "remove the buffer from the model, or make it a constant"};
      }
    }
    if (entry.kind == TensorKind::counter && all[i].tensor.numel() > 0) {  // of a model that was trained before
      entry.content_hash = static_cast<std::uint64_t>(all[i].tensor.detach().flatten()[0].item<std::int64_t>());
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace

at::Tensor losses_of(Loss loss, const at::Tensor& output, const at::Tensor& target) {
  if (loss != Loss::mse && target.dim() == 2) return losses_of(loss, output.flatten(0, 1), target.flatten());
  switch (loss) {
    case Loss::cross_entropy:
      return at::cross_entropy_loss(output, target, {}, at::Reduction::None);
    case Loss::nll:
      return at::nll_loss(output, target, {}, at::Reduction::None);
    case Loss::mse:
      return at::mse_loss(output, target.view(output.sizes()), at::Reduction::None);
  }
  TORCH_CHECK(false, "unknown loss");
}

Result<InspectedModel> inspect(const ModelSpec& spec) {
  const Result<Loss> loss = find_loss(spec.loss);
  if (!loss) return loss.error();
  Result<std::unique_ptr<Model>> model = make_model(spec);
  if (!model) return model.error();
  const at::AutoGradMode grad(true);
  InspectedModel found;
  found.model = std::move(model).value();
  found.model->train(true);
  Trial trial(*found.model, spec, *loss);
  const Status tried = trial.backward();
  if (!tried) return tried.error();
  Result<std::vector<LayoutEntry>> entries = entries_of(spec, *found.model, trial);
  if (!entries) return entries.error();
  Result<Layout> layout = Layout::make(std::move(entries).value());
  if (!layout) return layout.error();
  found.layout = std::move(layout).value();
  for (const NamedTensor& named : found.model->tensors()) named.tensor.mutable_grad() = at::Tensor();
  found.draws_random_numbers = found.model->draws_random_numbers();
  found.acts_on_groups = found.draws_random_numbers || found.model->mixes_samples();
  return found;
}

}  // namespace motley::torch_adapter

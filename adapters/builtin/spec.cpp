#include "builtin/spec.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/glob.h"

namespace motley::builtin {
namespace {

// Large enough that a step is not ruled by start-up costs of kernels, small enough for any card and for CPU caches.
constexpr std::uint64_t kMicroBatchCpu = 256;
constexpr std::uint64_t kMicroBatchAccelerator = 2048;
// Of samples with many targets fewer go at once: activations grow with the targets.
constexpr std::uint64_t kTargetsCpu = 4096;
constexpr std::uint64_t kTargetsAccelerator = 16384;

std::string to_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

std::int64_t elements_of(const ModelSpec& spec) {
  return std::accumulate(spec.sample_shape.begin(), spec.sample_shape.end(), std::int64_t{1}, std::multiplies<>());
}

Status check_cnn(const ModelSpec& spec) {
  const auto dimensions = spec.sample_shape.size();
  const bool image = dimensions >= 2 && spec.sample_shape[dimensions - 1] == 28 && elements_of(spec) == 28 * 28;
  if (image && spec.outputs <= 10) return {};
  return Error{ErrorCode::mismatch,
               "model '" + spec.kind + "' takes images of [1, 28, 28] in at most 10 classes, but the data have " +
                   to_text(spec.sample_shape) + " and " + std::to_string(spec.outputs),
               "use model.kind = \"mlp\", or a TorchScript file made for these data"};
}

Status check_mlp(const ModelSpec& spec) {
  const bool positive = std::all_of(spec.hidden.begin(), spec.hidden.end(), [](std::int64_t n) { return n > 0; });
  if (elements_of(spec) > 0 && spec.outputs > 0 && positive) return {};
  return Error{ErrorCode::input,
               "model 'mlp' needs positive sizes, but samples have " + to_text(spec.sample_shape) + ", hidden layers " +
                   to_text(spec.hidden) + ", outputs " + std::to_string(spec.outputs),
               "check model.hidden and the data set"};
}

Status check_gpt(const ModelSpec& spec) {
  const GptShape& shape = spec.gpt;
  const std::string block = std::to_string(shape.block);
  if (shape.block <= 0 || shape.layers <= 0 || shape.heads <= 0 || shape.width <= 0 || shape.width % shape.heads != 0) {
    return Error{ErrorCode::input,
                 "model 'gpt-mini' needs positive sizes and a width that is a multiple of its heads, but has block " +
                     block + ", " + std::to_string(shape.layers) + " layers, " + std::to_string(shape.heads) +
                     " heads, width " + std::to_string(shape.width),
                 "check model.block, model.layers, model.heads and model.width"};
  }
  const bool text = spec.sample_shape == std::vector<std::int64_t>{shape.block} &&
                    spec.targets == static_cast<std::uint64_t>(shape.block);
  if (text) return {};
  return Error{ErrorCode::mismatch,
               "model 'gpt-mini' takes windows of " + block +
                   " bytes (model.block) and predicts the byte after each; the data are something else",
               "use data.uri = \"text:FILE\""};
}

}  // namespace

Result<Loss> find_loss(const std::string& name) {
  if (name == "cross_entropy") return Loss::cross_entropy;
  if (name == "nll") return Loss::nll;
  if (name == "mse") return Loss::mse;
  return Error{ErrorCode::usage, "no loss called '" + name + "'", "use one of cross_entropy, nll, mse"};
}

Status check_sizes(const ModelSpec& spec) {
  if (spec.kind == "fashion-cnn" || spec.kind == "mnist-cnn") return check_cnn(spec);
  if (spec.kind == "mlp") return check_mlp(spec);
  if (spec.kind == "gpt-mini") return check_gpt(spec);
  return Error{ErrorCode::usage, "no model of kind '" + spec.kind + "'",
               "use one of fashion-cnn, mnist-cnn, mlp, gpt-mini, torchscript"};
}

Status check_data(const ModelSpec& spec, const data::Dataset& dataset, const std::string& part) {
  const auto wrong = [&](const std::string& what) {
    return Error{ErrorCode::mismatch, "the " + part + " data do not fit the model: " + what,
                 "check data.uri, data.test_uri and model.loss"};
  };
  const Result<Loss> loss = find_loss(spec.loss);
  if (!loss) return loss.error();
  if (dataset.sample_shape() != spec.sample_shape) return wrong("samples have another shape than the training data");
  const bool classes = *loss != Loss::mse;
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

std::uint32_t group_of(const ModelSpec& spec, const std::string& name) {
  for (const GroupRule& rule : spec.groups) {
    if (matches_glob(rule.pattern, name)) return rule.group;
  }
  return 0;
}

std::uint64_t content_hash(std::span<const std::byte> bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::byte each : bytes) hash = (hash ^ std::to_integer<std::uint64_t>(each)) * 0x100000001b3;
  return hash;
}

std::uint32_t micro_batch(const ModelSpec& spec, bool accelerator) {
  const std::uint64_t targets = std::max<std::uint64_t>(1, spec.targets);
  const std::uint64_t most = (accelerator ? kTargetsAccelerator : kTargetsCpu) / targets;
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(most, 1, accelerator ? kMicroBatchAccelerator : kMicroBatchCpu));
}

}  // namespace motley::builtin

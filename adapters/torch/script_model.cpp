// TorchScript files as models. They run in the plain interpreter: the optimising executors fuse differently from run to
// run, which costs the last bits, and recompile for every new batch size.
#include <torch/csrc/jit/frontend/error_report.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/python/update_graph_executor_opt.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/script.h>

#include <algorithm>
#include <istream>
#include <streambuf>

#include "builtin/script_rules.h"
#include "torch/model.h"
#include "torch/script_check.h"

namespace motley::torch_adapter {
namespace {

/// Reads straight from the bytes of the file, which may be large.
class MemoryBuffer : public std::streambuf {
 public:
  explicit MemoryBuffer(std::span<const std::byte> bytes) {
    // The buffer is only read; the interface of streambuf knows no const.
    char* begin = const_cast<char*>(reinterpret_cast<const char*>(bytes.data()));
    setg(begin, begin, begin + bytes.size());
  }

 private:
  pos_type seekoff(off_type offset, std::ios_base::seekdir from, std::ios_base::openmode) override {
    const char* base = from == std::ios_base::beg ? eback() : from == std::ios_base::cur ? gptr() : egptr();
    const off_type target = base - eback() + offset;
    if (target < 0 || target > egptr() - eback()) return pos_type(off_type(-1));
    setg(eback(), eback() + target, egptr());
    return pos_type(target);
  }
  pos_type seekpos(pos_type target, std::ios_base::openmode mode) override {
    return seekoff(off_type(target), std::ios_base::beg, mode);
  }
};

struct Traits {
  bool draws_random_numbers = false;
  bool mixes_samples = false;
};

void look_at(torch::jit::Block* block, Traits& traits) {
  for (torch::jit::Node* node : block->nodes()) {
    const std::string name = node->kind().toQualString();
    const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
    if (has("batch_norm")) traits.mixes_samples = true;
    if (has("dropout") || has("aten::rand") || has("bernoulli") || has("aten::normal") || has("uniform_") ||
        has("rrelu") || has("multinomial") || has("scaled_dot_product_attention")) {
      traits.draws_random_numbers = true;
    }
    for (torch::jit::Block* inner : node->blocks()) look_at(inner, traits);
  }
}

bool same_tensor(const at::Tensor& a, const at::Tensor& b) {
  return a.is_same(b) || (a.numel() > 0 && a.const_data_ptr() == b.const_data_ptr() && a.sizes() == b.sizes() &&
                          a.strides() == b.strides() && a.scalar_type() == b.scalar_type());
}

class ScriptModel final : public Model {
 public:
  explicit ScriptModel(torch::jit::Module module) : module_(std::move(module)) {
    for (const auto& named : module_.named_modules()) {
      const std::string prefix = named.name.empty() ? "" : named.name + ".";
      for (const auto& parameter : named.value.named_parameters(false)) {
        add(named.value, prefix, parameter.name, parameter.value, false);
      }
      for (const auto& buffer : named.value.named_buffers(false)) {
        add(named.value, prefix, buffer.name, buffer.value, true);
      }
    }
    const std::shared_ptr<torch::jit::Graph> graph = module_.get_method("forward").graph()->copy();
    torch::jit::Inline(*graph);
    look_at(graph->block(), traits_);
  }

  at::Tensor forward(const at::Tensor& x) override {
    const torch::jit::GraphOptimizerEnabledGuard plain(false);
    const c10::WarningUtils::WarningHandlerGuard quiet(&unheard_);
    return module_.forward({x}).toTensor();
  }
  void train(bool on) override { module_.train(on); }
  void to(const at::Device& device) override {
    for (NamedTensor& named : tensors_) {
      if (named.alias_of.empty()) named.tensor.set_data(named.tensor.to(device));
    }
  }
  const std::vector<NamedTensor>& tensors() const override { return tensors_; }
  bool draws_random_numbers() const override { return traits_.draws_random_numbers; }
  bool mixes_samples() const override { return traits_.mixes_samples; }
  Status save(const std::filesystem::path& path) override {
    module_.save(path.string());
    return {};
  }

 private:
  void add(torch::jit::Module owner, const std::string& prefix, const std::string& name, const at::Tensor& tensor,
           bool buffer) {
    for (const NamedTensor& earlier : tensors_) {
      if (!earlier.alias_of.empty() || !same_tensor(earlier.tensor, tensor)) continue;
      // Loading gives tied parameters one storage but two tensors; as one tensor they get one gradient.
      if (!earlier.tensor.is_same(tensor)) owner.setattr(name, earlier.tensor);
      tensors_.push_back({prefix + name, earlier.tensor, buffer, earlier.name});
      return;
    }
    tensors_.push_back({prefix + name, tensor, buffer, ""});
  }

  /// What a file warns of would go to the screen as it stands.
  struct Unheard final : c10::WarningHandler {
    void process(const c10::Warning&) override {}
  };

  torch::jit::Module module_;
  std::vector<NamedTensor> tensors_;
  Traits traits_;
  Unheard unheard_;
};

}  // namespace

Result<std::unique_ptr<Model>> load_script_model(const ModelSpec& spec) {
  const char* hint = builtin::kHowToWriteScripts;
  if (spec.file.empty()) return Error{ErrorCode::input, "a TorchScript model needs a file, but there is none", hint};
  try {
    MemoryBuffer buffer(spec.file.bytes());
    std::istream stream(&buffer);
    if (Status harmless = check_archive(stream); !harmless) return std::move(harmless).error();
    torch::jit::Module module = torch::jit::load(stream, at::Device(at::kCPU));
    if (Status harmless = check_operators(module); !harmless) return std::move(harmless).error();
    if (!module.find_method("forward")) {
      return Error{ErrorCode::input, "the TorchScript module has no method forward(x)", hint};
    }
    return std::unique_ptr<Model>(std::make_unique<ScriptModel>(std::move(module)));
  } catch (const c10::Error& e) {
    return builtin::unreadable_script(spec.file.size(), e.what_without_backtrace());
  } catch (const torch::jit::ErrorReport& e) {  // of its code
    return builtin::unreadable_script(spec.file.size(), e.what());
  }
}

}  // namespace motley::torch_adapter

#pragma once
// A model as this folder sees it: something with named tensors and a forward pass. Not thread-safe.

#include <torch/torch.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "motley/result.h"
#include "torch/torch_adapter.h"

namespace motley::torch_adapter {

struct NamedTensor {
  std::string name;  // as in state_dict
  at::Tensor tensor;
  bool buffer = false;   // no parameter
  std::string alias_of;  // the same tensor under an earlier name
};

class Model {
 public:
  virtual ~Model() = default;
  virtual at::Tensor forward(const at::Tensor& x) = 0;
  virtual void train(bool on) = 0;
  virtual void to(const at::Device& device) = 0;                              // tensors() stay the same objects
  [[nodiscard]] virtual const std::vector<NamedTensor>& tensors() const = 0;  // in forward order
  [[nodiscard]] virtual bool draws_random_numbers() const = 0;
  [[nodiscard]] virtual bool mixes_samples() const = 0;  // BatchNorm
  virtual Status save(const std::filesystem::path& path) = 0;
};

/// These may throw; callers run inside guarded().
Result<std::unique_ptr<Model>> make_model(const ModelSpec& spec);
std::unique_ptr<Model> make_gpt_model(const GptShape& shape);
Result<std::unique_ptr<Model>> load_script_model(const ModelSpec& spec);
/// The model with the state of a checkpoint, ready to be used. Errors: mismatch (the layout is of another model).
Result<std::unique_ptr<Model>> restore_model(const ModelSpec& spec, const Layout& layout,
                                             std::span<const SharedBytes> weights,
                                             const std::map<std::string, SharedBytes>& frozen, std::uint64_t step);

}  // namespace motley::torch_adapter

#pragma once
// Models computed by libtorch, behind motley::DeviceModel. This header is torch-free: only adapters/torch sees torch.
// Threading: the free functions may be called from any thread, one at a time; a DeviceModel as its base class says.
// No exception leaves this folder.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "builtin/sample_text.h"
#include "builtin/spec.h"
#include "data/dataset.h"
#include "motley/bytes.h"
#include "motley/device_model.h"
#include "motley/layout.h"
#include "motley/result.h"

namespace motley::torch_adapter {

struct DeviceInfo {
  std::string name;         // "cuda:0", "mps", "cpu"
  std::string description;  // "NVIDIA GeForce RTX 4070 Ti", "AMD EPYC 7763"
  std::uint64_t memory_bytes = 0;
  unsigned threads = 0;  // processors this process may use; 0 for accelerators
};

/// The devices of this machine, accelerators first, the CPU last. Never empty.
std::vector<DeviceInfo> devices();

using builtin::GptShape;
using builtin::GroupRule;
using builtin::ModelSpec;
using builtin::SampleRequest;

struct Options {
  std::string device = "cpu";
  unsigned threads = 0;           // cpu: 0 means all processors this process may use
  std::uint32_t micro_batch = 0;  // what capabilities() recommends; 0: the device's default
  bool staged = false;            // for tests: work on the CPU as on an accelerator, through copies
};

/// `train` and `test` may be null when no such task will come. Errors: usage (unknown kind, loss or device), input (a
/// file that torch cannot read, a model that does not take the samples), mismatch (more classes than outputs), memory.
Result<std::unique_ptr<DeviceModel>> make_device_model(const ModelSpec& model, const Options& options,
                                                       std::shared_ptr<const data::Dataset> train,
                                                       std::shared_ptr<const data::Dataset> test);

/// What the head starts a new run from: weights from `seed` (built-in kinds) or the file's own (torchscript).
struct InitialState {
  Layout layout;
  std::vector<SharedBytes> weights;           // by chunk, fp32
  std::map<std::string, SharedBytes> frozen;  // bytes of the frozen tensors, by entry name
  /// Results depend on which samples share a forward pass (BatchNorm, dropout): ranges are cut at multiples of
  /// ModelSpec::group_samples, and micro-batches are such groups. Otherwise any cut gives the same sums.
  bool acts_on_groups = false;
  bool draws = false;  // random numbers, in training
};
Result<InitialState> initial_state(const ModelSpec& model);

/// Writes a file that torch.jit.load reads, with the names of the checkpoint in its state_dict. `weights` and `frozen`
/// as in a checkpoint; num_batches_tracked becomes `step`. Errors: mismatch (the layout is of another model), io.
Status export_torchscript(const ModelSpec& model, const Layout& layout, std::span<const SharedBytes> weights,
                          const std::map<std::string, SharedBytes>& frozen, std::uint64_t step,
                          const std::filesystem::path& path);

/// Continues the prompt with a trained gpt-mini, each byte seeing the last GptShape::block ones, and hands on one byte
/// after the other until `on_byte` returns false. Errors: mismatch (the layout is of another model), memory.
Status sample_text(const ModelSpec& model, const Layout& layout, std::span<const SharedBytes> weights,
                   const SampleRequest& request, const std::function<bool(char)>& on_byte);

/// The version of the libtorch in use, e.g. "2.13.0+cpu".
std::string torch_version();

}  // namespace motley::torch_adapter

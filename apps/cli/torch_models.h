#pragma once
// The models that need torch, as the program asks for them: those of libtorch where it was built with that, of the
// user's torch where it runs in a Python.

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "builtin/sample_text.h"
#include "builtin/spec.h"
#include "runtime/model_provider.h"

namespace motley::cli {

class TorchModels {
 public:
  virtual ~TorchModels() = default;
  /// "libtorch 2.13.0+cpu"; empty where there is no torch after all. May take the seconds of an import.
  [[nodiscard]] virtual std::string version() = 0;
  /// What a report of a fault should say of it, by name: ("torch", "2.13.0+cpu"), ("cuda", "13.0"), …; empty where
  /// there is none.
  [[nodiscard]] virtual std::vector<std::pair<std::string, std::string>> facts() { return {{"torch", version()}}; }
  /// How to come by a torch, where there is none.
  [[nodiscard]] virtual std::string how_to_get() const = 0;
  /// Accelerators first.
  [[nodiscard]] virtual std::vector<runtime::Device> devices() = 0;
  /// From which it may load more of itself while it computes.
  [[nodiscard]] virtual std::vector<std::filesystem::path> directories() { return {}; }

  virtual Result<runtime::InitialState> initial_state(const builtin::ModelSpec& spec) = 0;
  virtual Result<std::unique_ptr<DeviceModel>> make(const builtin::ModelSpec& spec, const runtime::ModelInputs& inputs,
                                                    const std::string& device, unsigned threads) = 0;
  /// Writes a file that torch.jit.load reads. Errors: mismatch (the layout is of another model), io.
  virtual Status export_torchscript(const builtin::ModelSpec& spec, const Layout& layout,
                                    const std::vector<SharedBytes>& weights,
                                    const std::map<std::string, SharedBytes>& frozen, std::uint64_t step,
                                    const std::string& path) = 0;
  /// Hands on the bytes that a gpt-mini writes after a prompt, until `on_byte` returns false.
  virtual Status sample_text(const builtin::ModelSpec& spec, const Layout& layout,
                             const std::vector<SharedBytes>& weights, const builtin::SampleRequest& request,
                             const std::function<bool(char)>& on_byte) = 0;
};

/// Of the libtorch that this program was built with; only there.
std::shared_ptr<TorchModels> libtorch_models();

}  // namespace motley::cli

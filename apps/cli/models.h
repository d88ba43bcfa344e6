#pragma once
// All models this program knows: torch's, where it was built with torch, and softmax regression.

#include <functional>
#include <memory>
#include <string>

#include "runtime/model_provider.h"

namespace motley::cli {

/// `retrieve` downloads their data sets; it may be empty.
std::unique_ptr<runtime::ModelProvider> make_models(data::Retrieve retrieve);

/// Only with torch; else an error that says so.
Status export_torchscript(const config::RunConfig& config, const SharedBytes& file, const Layout& layout,
                          const std::vector<SharedBytes>& weights, const std::map<std::string, SharedBytes>& frozen,
                          std::uint64_t step, const std::string& path);

struct SampleOptions {
  std::string prompt;
  std::uint64_t bytes = 500;
  double temperature = 0.8;
  std::uint64_t top_k = 0;  // 0: all
  std::uint64_t seed = 1;
};

/// Hands on the bytes that a gpt-mini writes after a prompt, until `on_byte` returns false. Only with torch.
Status sample_text(const config::RunConfig& config, const Layout& layout, const std::vector<SharedBytes>& weights,
                   const SampleOptions& options, const std::function<bool(char)>& on_byte);

/// "2.13.0+cpu", or "" without torch.
std::string torch_version();

}  // namespace motley::cli

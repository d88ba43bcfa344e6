#pragma once
// All models this program knows: torch's, where it was built with torch, and softmax regression.

#include <memory>
#include <string>

#include "runtime/model_provider.h"

namespace motley::cli {

std::unique_ptr<runtime::ModelProvider> make_models();

/// Only with torch; else an error that says so.
Status export_torchscript(const runtime::RunConfig& config, const SharedBytes& file, const Layout& layout,
                          const std::vector<SharedBytes>& weights, const std::map<std::string, SharedBytes>& frozen,
                          std::uint64_t step, const std::string& path);

/// "2.13.0+cpu", or "" without torch.
std::string torch_version();

}  // namespace motley::cli

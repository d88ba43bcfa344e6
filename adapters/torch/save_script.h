#pragma once
// How built-in models become TorchScript files. Functions without state.

#include <filesystem>
#include <string>
#include <vector>

#include "torch/model.h"

namespace motley::torch_adapter {

/// Builds the modules that the names of the parameters tell of, gives the outermost the methods of `script` and saves
/// it. Throws what torch throws.
void save_script(const std::vector<NamedTensor>& parameters, const std::string& class_name, const std::string& script,
                 const std::filesystem::path& path);

}  // namespace motley::torch_adapter

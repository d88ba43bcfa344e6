#include <torch/script.h>

#include "torch/model.h"

namespace motley::torch_adapter {

Result<std::unique_ptr<Model>> load_script_model(const ModelSpec&) {
  return Error{ErrorCode::usage, "TorchScript files are not supported yet", ""};
}

}  // namespace motley::torch_adapter

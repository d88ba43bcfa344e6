#pragma once
// All models this program knows: torch's, where there is a torch, and softmax regression.

#include <memory>
#include <string>

#include "runtime/model_provider.h"
#include "store/checkpoint.h"
#include "torch_models.h"

namespace motley::cli {

/// `retrieve` and `bring` fetch their data sets; they may be empty. `torch` may be null.
std::unique_ptr<runtime::ModelProvider> make_models(data::Retrieve retrieve, data::Bring bring,
                                                    std::shared_ptr<TorchModels> torch);

/// That there is no torch for `what`.
Error no_torch(const std::string& what, const TorchModels* torch);

/// Of a run, without its data set: for what its checkpoints have.
builtin::ModelSpec spec_of(const config::RunConfig& config, const SharedBytes& file,
                           const store::CheckpointContent& content);

}  // namespace motley::cli

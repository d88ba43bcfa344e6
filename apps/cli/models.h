#pragma once
// The one model that the program has itself: softmax regression on made-up data. All others are of scripts.

#include <memory>

#include "runtime/model_provider.h"

namespace motley::cli {

std::unique_ptr<runtime::ModelProvider> make_models();

}  // namespace motley::cli

#pragma once
#include "runtime/config.h"

namespace motley::runtime {

/// Sets the defaults that go with a model kind. False: no such kind.
bool apply_recipe(const std::string& kind, RunConfig& config);

}  // namespace motley::runtime

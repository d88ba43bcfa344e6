#pragma once
#include "config/config.h"

namespace motley::config {

/// Sets the defaults that go with a model kind. False: no such kind.
bool apply_recipe(const std::string& kind, RunConfig& config);

}  // namespace motley::config

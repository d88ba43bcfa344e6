#pragma once
// What a configuration must obey, whatever its origin. Pure. Private to this folder.

#include <string>
#include <vector>

#include "config/config.h"
#include "motley/result.h"

namespace motley::config {

/// What the user gave cannot be used.
Error bad(std::string message, std::string hint = {});
/// `value` is one of the words that `key` takes.
Status one_of(const std::string& key, const std::string& value, const std::vector<std::string>& allowed);
/// Ranges of single keys, then what keys ask of each other.
Status check(const RunConfig& config);

}  // namespace motley::config

#pragma once
// Times that people type: "90s", "30m", "12h", "7d". Functions without state.

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "base/time.h"

namespace motley::cli {

/// --expires, into `good_for`. REQUIRES it outlives the parsing.
CLI::Option* add_expires(CLI::App& command, std::optional<Duration>& good_for);

/// From a second to ten years; empty where it is none.
std::optional<Duration> parse_duration(const std::string& text);

}  // namespace motley::cli

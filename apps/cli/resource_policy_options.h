#pragma once
// Options of commands whose workers share a machine with its user.

#include <CLI/CLI.hpp>

#include "runtime/resource_policy.h"
#include "runtime/worker/yield_rule.h"

namespace motley::cli {

/// --share, --nice and --no-keep-awake; the values in `resource_policy` are the defaults. REQUIRES both outlive the
/// parsing.
void add_resource_policy(CLI::App& command, runtime::ResourcePolicy& resource_policy);
/// --name. REQUIRES `name` outlives the parsing.
void add_name(CLI::App& command, std::string& name);
/// --idle-only, --idle-after and --battery.
void add_yielding(CLI::App& command, runtime::YieldOptions& yield);

}  // namespace motley::cli

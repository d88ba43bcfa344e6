#pragma once
// What train.mode=auto comes to: measured with those who join, before the run begins.

#include <functional>
#include <optional>
#include <string>

#include "fleet/token.h"
#include "runtime/head/train.h"

namespace motley::runtime {

/// "exact" or "rounds"; nothing: the options name a mode. A run that is resumed keeps the one that it was begun with.
/// Where it measures, `begun` is called when others can join, and they come back for the run itself. REQUIRES
/// options.reception. The error was not yet told to `sink`.
Result<std::optional<std::string>> auto_mode(const TrainOptions& options, ModelProvider& provider, report::Sink& sink,
                                             StopSource& stop, std::function<void(const fleet::JoinToken&)> begun = {});

}  // namespace motley::runtime

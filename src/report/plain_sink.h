#pragma once
// Plain lines, for logs and pipes.

#include <memory>

#include "report/sink.h"
#include "report/writer.h"

namespace motley::report {

/// A step line at most every `seconds_between`, and what the run waits for when it has done so for a while. Lines are
/// dropped as those of JSON are.
std::unique_ptr<Sink> make_plain_sink(std::shared_ptr<Writer> writer, double seconds_between = 2.0);

}  // namespace motley::report

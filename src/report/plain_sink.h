#pragma once
// Plain lines, for logs and pipes.

#include <memory>

#include "report/sink.h"

namespace motley::report {

/// A step line at most every `seconds_between`, and what the run waits for when it has done so for a while.
std::unique_ptr<Sink> make_plain_sink(int descriptor, double seconds_between = 2.0);

}  // namespace motley::report

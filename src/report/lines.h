#pragma once
// Events as sentences for people. Pure.

#include <string>

#include "report/event.h"

namespace motley::report {

/// Whole lines with their ends; empty for what nobody reads as a line: eval points, pauses, and what the run waits for.
std::string lines_of(const Event& event);

}  // namespace motley::report

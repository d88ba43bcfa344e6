#pragma once
// The program's contract with other programs: one JSON object a line, for the kinds of events that it knows. Fields are
// added, never renamed.

#include <memory>

#include "report/sink.h"

namespace motley::report {

/// On `descriptor`, and nothing else there. NaN and infinities become null; losses have enough digits to compare to
/// 1e-6 (shortest round trip).
std::unique_ptr<Sink> make_json_sink(int descriptor);

}  // namespace motley::report

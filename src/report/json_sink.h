#pragma once
// The program's contract with other programs: one JSON object a line, for the kinds of events that it knows. Fields are
// added, never renamed.

#include <memory>

#include "report/sink.h"
#include "report/writer.h"

namespace motley::report {

/// NaN and infinities become null; losses have enough digits to compare to 1e-6 (shortest round trip). Where the reader
/// is too far behind, events are dropped, but for the run's beginning, its end and errors; an event says how many.
std::unique_ptr<Sink> make_json_sink(std::shared_ptr<Writer> writer);

}  // namespace motley::report

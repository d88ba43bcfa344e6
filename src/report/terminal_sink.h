#pragma once
// A live display in a terminal, drawn from a Board alone: progress bar with step, loss (with a small history),
// samples/s and time left; a line per worker with its share and what it waits for; messages scroll above it. Redraws at
// most 10 times a second, where there is something new and the terminal keeps up, and leaves the terminal as it found
// it.

#include <memory>

#include "report/sink.h"
#include "report/writer.h"

namespace motley::report {

/// A sink whose lines move, beside which others write to the same terminal. Calls may come from any thread, also at the
/// same time.
class Display : public Sink {
 public:
  /// Takes away what moves, until show() has been called as often: meanwhile others may write whole lines, and nothing
  /// of the run is written.
  virtual void hide() = 0;
  /// `begun`: the start of a line that others have not ended yet, without control characters; shown with what moves.
  virtual void show(const std::string& begun) = 0;
  /// What moves is left as it is, and what comes is written below it. Idempotent.
  virtual void end() = 0;
};

std::unique_ptr<Display> make_terminal_sink(std::shared_ptr<Writer> writer);

}  // namespace motley::report

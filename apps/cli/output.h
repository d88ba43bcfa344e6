#pragma once
// What this process says of a run: sinks, and the descriptors that they write to. Any thread may hurry it; the rest is
// as for every sink.

#include <chrono>
#include <memory>
#include <vector>

#include "report/terminal_sink.h"
#include "report/writer.h"

namespace motley::cli {

class Output final : public report::Sink {
 public:
  Output(std::shared_ptr<report::Sink> sink, std::vector<std::shared_ptr<report::Writer>> writers)
      : writers_(std::move(writers)), sink_(std::move(sink)) {}
  void take(const report::Event& event) override { sink_->take(event); }
  /// Waits until nothing waits for its reader, or hurry() was called, at most so long. Whether that is so.
  [[nodiscard]] bool flush(std::chrono::milliseconds patience) const;
  /// Somebody wants to leave: report::Writer::hurry().
  void hurry();

 private:
  std::vector<std::shared_ptr<report::Writer>> writers_;
  std::shared_ptr<report::Sink> sink_;  // goes first, with last words
};

/// JSON on standard output and lines on standard error; else a live display in a terminal, lines elsewhere. `quiet`: no
/// live display, because others print too.
std::unique_ptr<Output> make_output(bool json, bool quiet = false);

}  // namespace motley::cli

#pragma once
// What happens in a run, as the loop of its script is told. The coordinator's thread tells; the script's thread asks.

#include <deque>
#include <memory>
#include <optional>
#include <variant>

#include "bindings.h"
#include "modes/pauses.h"
#include "report/sink.h"

namespace motley::python {

/// An event that the script's loop gets.
struct QueuedEvent {
  std::variant<report::StepDone, report::EvalPointReached, report::EvalDone> event;
  std::shared_ptr<report::ModelState> state{};  // of an eval point, and where the run is paused
  bool paused = false, paused_step = false;     // the run waits; `paused_step`: after a step, else at an eval point
};

class EventQueue {
 public:
  void begin();
  void add(QueuedEvent queued);
  void end();
  /// The next one; empty at the end.
  std::optional<QueuedEvent> next();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<QueuedEvent> queue_;
  bool ended_ = true;  // a run that could not begin has nothing to tell
};

/// Puts what is told in order: where the run is paused at an event, that waits for the pause.
class EventSequencer final : public report::Sink {
 public:
  /// `steps`: each of them is wanted, too.
  EventSequencer(EventQueue& queue, bool steps, modes::Pauses pauses) : queue_(queue), steps_(steps), pauses_(pauses) {}
  void take(const report::Event& event) override;
  /// What waited for a pause that does not come any more.
  void end();

 private:
  void step(const report::StepDone& event);
  void eval_point(const report::EvalPointReached& event);
  void evaluated(const report::EvalDone& event);
  void paused(const report::Paused& event);
  void publish(std::optional<QueuedEvent>& waiting);

  EventQueue& queue_;
  const bool steps_;
  const modes::Pauses pauses_;
  bool tested_ = false;
  std::optional<QueuedEvent> step_, eval_point_, evaluation_;  // until the run is paused there
};

}  // namespace motley::python

#pragma once
// What happens in a run, as the loop of its script is told. The coordinator's thread tells; the script's thread asks.

#include <deque>
#include <memory>
#include <optional>
#include <variant>

#include "bindings.h"
#include "modes/holds.h"
#include "report/sink.h"

namespace motley::python {

/// An event that the script's loop gets.
struct Told {
  std::variant<report::StepDone, report::MarkReached, report::EvalDone> event;
  std::shared_ptr<report::ModelState> state{};  // of a mark, and where the run is held
  bool held = false, held_step = false;         // the run waits; `held_step`: after a step, else at a mark
};

class ToldQueue {
 public:
  void begin();
  void add(Told told);
  void end();
  /// The next one; empty at the end.
  std::optional<Told> next();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Told> queue_;
  bool ended_ = true;  // a run that could not begin has nothing to tell
};

/// Puts what is told in order: where the run is held at an event, that waits for the hold.
class Story final : public report::Sink {
 public:
  /// `steps`: each of them is wanted, too.
  Story(ToldQueue& queue, bool steps, modes::Holds holds) : queue_(queue), steps_(steps), holds_(holds) {}
  void take(const report::Event& event) override;
  /// What waited for a hold that does not come any more.
  void end();

 private:
  void step(const report::StepDone& event);
  void mark(const report::MarkReached& event);
  void evaluated(const report::EvalDone& event);
  void held(const report::Held& event);
  void tell(std::optional<Told>& waiting);

  ToldQueue& queue_;
  const bool steps_;
  const modes::Holds holds_;
  bool tested_ = false;
  std::optional<Told> step_, mark_, evaluation_;  // until the run is held there
};

}  // namespace motley::python

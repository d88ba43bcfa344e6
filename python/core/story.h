#pragma once
// What happens in a run, as the loop of its script is told. The coordinator's thread tells; the script's thread asks.

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bindings.h"
#include "engine/coordinator.h"
#include "observe/observer.h"

namespace motley::runtime {
struct Run;
}

namespace motley::python {

/// The weights at one version, and while the run is held there, what the optimizer keeps. Taking one copies nothing.
struct State {
  State(const ps::Server& server, bool held);
  std::uint64_t version;
  std::vector<SharedBytes> weights;
  std::map<std::string, std::vector<SharedBytes>> optimizer;  // by name, by chunk
};

/// A step, a mark (with its state), or an evaluation.
struct Happening {
  enum class Kind : std::uint8_t { step, epoch, evaluation };
  Kind kind = Kind::step;
  std::uint64_t epoch = 0, version = 0, samples = 0;
  double loss = 0, seconds = 0, learning_rate = 0, gradient_norm = 0;
  std::vector<std::pair<std::string, double>> scores{};
  std::shared_ptr<State> state{};
  bool held = false, held_step = false;  // the run waits; `held_step`: after a step, else at a mark
};

class Happenings {
 public:
  void begin();
  void add(Happening happening);
  void end();
  /// The next one; empty at the end.
  std::optional<Happening> next();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Happening> queue_;
  bool ended_ = true;  // a run that could not begin has nothing to tell
};

/// Puts together what is told, on the coordinator's thread.
class Story {
 public:
  /// `steps`: each of them is wanted, too.
  Story(Happenings& happenings, bool steps, modes::Holds holds)
      : happenings_(happenings), steps_(steps), holds_(holds) {}

  /// Before the first step: what a run that goes on had done.
  void begin(const runtime::Run& run);
  void step(const engine::StepClosed& step, const engine::Coordinator& coordinator);
  void evaluated(const observe::EvalDone& event);
  void held(std::uint64_t version, bool step, const engine::Coordinator& coordinator);
  /// What waited for a hold that does not come any more.
  void end();

 private:
  void mark(std::uint64_t epoch, std::uint64_t version, std::shared_ptr<State> state);
  void tell(std::optional<Happening>& waiting);

  Happenings& happenings_;
  const bool steps_;
  const modes::Holds holds_;
  bool tested_ = false;
  std::uint64_t every_ = 0;
  // Since the last mark.
  double loss_sum_ = 0, weight_ = 0, seconds_ = 0, learning_rate_ = 0;
  std::uint64_t samples_ = 0;
  std::optional<Happening> step_, mark_, evaluation_;  // until the run is held there
};

/// Notes evaluations beside what is displayed.
std::unique_ptr<observe::Observer> make_story_observer(Story& story);

}  // namespace motley::python

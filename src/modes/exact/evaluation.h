#pragma once
// Whether the version of the day is to be evaluated, and by whom: a parked worker beside the training, at a version of
// its own, so that the others need not stop for it; else everybody, before the next step. One thread at a time.

#include <cstdint>
#include <optional>

#include "modes/event.h"
#include "modes/exact/pass_work.h"
#include "modes/run.h"

namespace motley::modes {

/// An evaluation by a parked worker, while the others train.
struct Aside {
  SessionId session = 0;
  WorkerId worker = 0;
  LeaseId lease = 0;
  std::uint64_t version = 0, epoch = 0;
  Time deadline{};
};

class Evaluation {
 public:
  /// REQUIRES both outlive this.
  Evaluation(Run& run, const PassWork& work) : run_(run), work_(work) {}

  /// The run starts. `owed`: the hold of a mark comes first, with its evaluation.
  void started(bool owed);
  /// A version was made.
  void version_made() { pending_ = pending_ || due(); }
  /// Everybody has evaluated it.
  void done() noexcept { pending_ = false; }
  /// To be evaluated before the next step, unless somebody does it aside.
  [[nodiscard]] bool pending() const noexcept { return pending_; }

  [[nodiscard]] const std::optional<Aside>& aside() const noexcept { return aside_; }
  /// Finds somebody who evaluates aside, where that is allowed.
  void go_aside(Time now);
  void on(const EvaluatedAside& event);
  void watch(Time now);
  /// Its worker is needed elsewhere, or lost.
  void session_lost(SessionId session);

 private:
  [[nodiscard]] bool due() const noexcept { return run_.config.test_samples > 0 && run_.at_mark(); }
  void drop(bool failed);

  Run& run_;
  const PassWork& work_;
  bool pending_ = false;
  std::optional<Aside> aside_;
};

}  // namespace motley::modes

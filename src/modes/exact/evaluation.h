#pragma once
// Whether the version of the day is to be evaluated, and by whom: a parked worker beside the training, at a version of
// its own, so that the others need not stop for it; else everybody, before the next step. What a worker of another
// machine evaluates first, and one in so many later, everybody evaluates as well: it is compared, and that of everybody
// is told. One thread at a time.

#include <cstdint>
#include <optional>

#include "base/philox.h"
#include "modes/event.h"
#include "modes/run.h"
#include "modes/work/pass_work.h"

namespace motley::modes {

/// An evaluation by a parked worker, while the others train.
struct BackgroundEvaluation {
  SessionId session = 0;
  WorkerId worker = 0;
  LeaseId lease = 0;
  std::uint64_t version = 0, epoch = 0;
  Time deadline{};
  bool compared = false;  // everybody evaluates this version as well
};

class Evaluation {
 public:
  /// REQUIRES both outlive this.
  Evaluation(Run& run, const PassWork& work)
      : run_(run), work_(work), random_(~run.config.verify.secret, run.config.first_version) {}

  /// The run starts. `owed`: the pause at an eval point comes first, with its evaluation.
  void started(bool owed);
  /// A version was made.
  void version_made() { pending_ = pending_ || due(); }
  /// Everybody has evaluated it.
  void done();
  /// To be evaluated before the next step, unless somebody does it in the background.
  [[nodiscard]] bool pending() const noexcept { return pending_; }

  [[nodiscard]] const std::optional<BackgroundEvaluation>& background() const noexcept { return background_; }
  /// Finds somebody who evaluates in the background, where that is allowed.
  void go_to_background(Time now);
  void on(const BackgroundEvaluated& event);
  void on(const BackgroundCompared& event);
  void watch(Time now);
  /// Its worker is needed elsewhere, or lost.
  void session_lost(SessionId session);

 private:
  /// An evaluation by a parked worker and by everybody, which are to be compared.
  struct Check {
    WorkerId worker = 0;
    bool evaluated = false, by_everybody = false;
  };

  [[nodiscard]] bool looked_at(const fleet::Member& member);
  void compare();
  [[nodiscard]] bool due() const noexcept { return run_.config.test_samples > 0 && run_.at_eval_point(); }
  void drop(bool failed);

  Run& run_;
  const PassWork& work_;
  bool pending_ = false;
  std::optional<BackgroundEvaluation> background_;
  std::optional<Check> check_;
  Philox random_;
};

}  // namespace motley::modes

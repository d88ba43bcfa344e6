#pragma once
// What the rooms of one run have in common: its settings, how far it is, who is here, and the list of what is to be
// done. Whoever composes them owns it. One thread at a time.

#include <cstdint>
#include <vector>

#include "base/assert.h"
#include "base/batch_plan.h"
#include "base/time.h"
#include "fleet/roster.h"
#include "modes/action.h"
#include "modes/pauses.h"
#include "modes/performance_model.h"
#include "modes/verify.h"

namespace motley::modes {

struct RunConfig {
  std::uint32_t incarnation = 1;
  std::uint64_t first_version = 0;
  std::uint64_t steps = 0;   // the run ends at this version
  std::uint64_t epochs = 0;  // instead, where not 0: after so many
  std::uint64_t train_samples = 0;
  std::uint64_t test_samples = 0;  // 0: no evaluation
  std::uint64_t global_batch = 0;
  std::vector<BatchChange> batch_changes;  // that were made before
  std::uint64_t grain = 1;
  std::uint64_t evaluate_every = 0;  // 0: at the end of each epoch
  std::uint64_t min_workers = 1;
  std::size_t sessions_max = 256;
  std::uint32_t chunks = 0;
  std::uint32_t first_applied = 0;      // of them, where all are applied at once; the others follow in a circle
  std::uint64_t whole_until = 0;        // steps before this one need all chunks reduced before one is applied
  bool evaluates_in_background = true;  // beside the training, where somebody is free; else the next step waits
  bool resumable = true;                // a run that is stopped may go on later
  Pauses pauses = Pauses::never;        // else nobody evaluates in the background
  bool pause_owed = false;              // where first_version is an eval point: it was not resumed there before
  Duration heartbeat = std::chrono::milliseconds(500);
  Duration silence = std::chrono::milliseconds(1800);
  Duration loading = std::chrono::seconds(300);
  Duration measure_again = std::chrono::seconds(5);  // a parked worker
  Verify verify{};
  std::uint64_t solo_after = 0;  // train passes before a delegation begins; 0: never
  // A step is a round of so many local steps of so many samples, and global_batch is that of the round; 0: it is not.
  std::uint64_t local_steps = 0, local_batch = 0;
  bool overlap = false;      // a round begins while what the last one came to is on its way
  std::vector<Owed> owed{};  // by rounds before first_version
};

struct Run {
  Run(const RunConfig& given, PerformanceModel& speeds)
      : config(given),
        batches(given.train_samples, given.global_batch, given.batch_changes),
        performance(speeds),
        version(given.first_version) {}

  /// The run ends at this version.
  [[nodiscard]] std::uint64_t steps() const noexcept {
    return config.epochs > 0 ? batches.first_step(config.epochs) : config.steps;
  }
  /// Samples of the next step.
  [[nodiscard]] std::uint64_t batch() const { return batches.batch(version); }
  /// Of a machine that sleeps, or whose cable is out, heartbeats are missing well before it counts as lost.
  [[nodiscard]] bool is_unheard(const fleet::Member& member, Time now) const noexcept {
    return !member.local && now - member.heard >= config.heartbeat * 3 / 2;
  }
  /// An evaluation would be due at this version, whether or not there is a test set.
  [[nodiscard]] bool at_eval_point() const noexcept {
    return version >= steps() || EvalPoints{config.evaluate_every}.at(batches, version);
  }
  /// Of a lease, or of work outside of a pass.
  LeaseId next_lease() noexcept { return ++last_lease; }
  Action& act(ActionKind kind, Reason reason = {}) {
    MOTLEY_ASSERT(actions != nullptr);
    Action& action = actions->emplace_back();
    action.kind = kind;
    action.worker = reason.worker;
    action.version = version;
    action.reason = reason;
    return action;
  }

  RunConfig config;
  BatchPlan batches;
  PerformanceModel& performance;
  fleet::Roster roster{};
  std::uint64_t version = 0;
  LeaseId last_lease = 0;
  bool opened_any = false;  // work was opened
  bool stopping = false, finished = false;
  Actions* actions = nullptr;  // of the running decide()
};

}  // namespace motley::modes

#pragma once
// What must hold in every run, whatever happens to the machines (docs/design and the invariants of the engine). Told of
// everything while a run goes on; collects what is wrong instead of stopping at it. One thread.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/head/coordinator.h"
#include "engine/worker/worker.h"
#include "sim/reference.h"
#include "sim/round_replay.h"
#include "sim/scenario.h"
#include "wire/messages.h"

namespace motley::sim {

struct Measured {
  double loss_error = 0;      // largest relative difference of a step's loss
  double weights_error = 0;   // of the final weights
  double slowest_step_s = 0;  // longest step, not counting time with something broken
  std::uint64_t trims = 0;    // leases that were asked to end earlier
  std::uint64_t overlapped =
      0;                     // local steps that were made before the weights of their round were used, by who counts
  std::uint64_t raises = 0;  // leases that were extended
};

class Checks {
 public:
  static constexpr std::size_t kFailuresMax = 64;
  /// By codec, the coarser of the two: of losses and of the final weights as a whole. What is small beside the rest of
  /// the model may be altogether wrong within these; so the way that each tensor went from its beginning is compared,
  /// too, by its direction (the cosine of the angle) and by its length (the part by which it may be off).
  static constexpr double kTolerances[] = {2e-5, 2e-3, 1e-2, 1e-1};
  static constexpr double kCosinesMin[] = {0.99999, 0.9999, 0.997, 0.85};
  static constexpr double kLengthsMax[] = {1e-5, 1e-3, 1e-2, 0.25};
  static constexpr double kReplayTolerance = 1e-7;  // of steps done again, in fp32
  static constexpr double kLossMin = 1e-3;          // below it a difference counts as of this
  static constexpr Duration kStepMax = std::chrono::seconds(7);

  Checks(const Scenario& scenario, const Reference& reference, const Data& data);

  void fail(std::string what);
  [[nodiscard]] const std::vector<std::string>& failures() const noexcept { return failures_; }
  [[nodiscard]] const Measured& measured() const noexcept { return measured_; }

  /// The coordinator came up (again) with `weights` at `version`: what it closed after that is undone.
  void head_started(std::uint32_t incarnation, std::uint64_t version, const std::vector<SharedBytes>& weights);
  /// `weights` of the version after the step, and what workers are to `hold` of it.
  void step_closed(std::uint32_t incarnation, const engine::StepClosed& step, const std::vector<SharedBytes>& weights,
                   const std::vector<SharedBytes>& held, Time now, Time healed_at);
  void evaluated(const engine::Evaluated& evaluation);
  void paused(std::uint64_t version, bool step);
  void resumed() { paused_ = false; }
  /// What the loss gets from a version on.
  void state_changed(std::uint64_t version, const LossState& state);
  /// A worker of a session with this incarnation begins to compute.
  void task_computes(std::uint32_t incarnation, const engine::TaskOrder& order);
  /// A control message on its way from the head to session `session`.
  void head_said(std::uint64_t session, const wire::Message& message);
  void worker_said(const wire::Frame& frame);
  /// After the end.
  void finished(std::uint64_t version, const std::vector<SharedBytes>& weights);

 private:
  struct Commit {
    double weight = 0, loss_sum = 0;
    std::vector<engine::CommittedRange> ranges;
    std::vector<engine::CommittedLate> late;
  };
  void check_round(const engine::StepClosed& step, const std::vector<SharedBytes>& weights);
  void check_all_used();
  void check_ranges(std::uint64_t step, const std::vector<engine::CommittedRange>& ranges, std::uint64_t count);
  /// Number of the coarser codec in the tables above.
  [[nodiscard]] std::size_t coarseness() const;
  [[nodiscard]] double tolerance() const { return kTolerances[coarseness()]; }
  void check_courses(const std::vector<SharedBytes>& weights);
  void check_epochs();
  void check_holds();
  void check_state(std::uint32_t incarnation, const engine::TaskOrder& order);
  [[nodiscard]] bool eval_point(std::uint64_t version) const;
  void lease_ended(std::uint64_t session, std::uint64_t lease);
  bool said_before(std::uint64_t session, const wire::Taken& taken);

  const Scenario& scenario_;
  const Reference& reference_;
  BatchPlan batches_;
  std::optional<RoundReplay> replay_;  // in rounds
  std::vector<std::string> failures_;
  Measured measured_;
  struct Hashes {
    std::uint64_t weights = 0, held = 0;
  };
  std::map<std::pair<std::uint32_t, std::uint64_t>, Hashes> versions_;  // (incarnation, version)
  std::map<std::uint64_t, Commit> ledger_;                              // effective, by step
  std::uint32_t incarnation_ = 0;
  std::uint64_t version_ = 0;
  Time last_closed_{};
  bool paused_ = false;
  struct State {
    std::uint64_t number = 0, hash = 0;
    bool operator==(const State&) const = default;
  };
  std::map<std::uint32_t, std::map<std::uint64_t, State>> states_;  // by incarnation and first version
  std::set<std::uint64_t> paused_steps_, paused_eval_points_;       // versions
  struct Lease {
    std::uint64_t pass = 0;
    std::uint64_t limit = 0, ceiling = 0;
    bool ended = false;
  };
  std::map<std::pair<std::uint64_t, std::uint64_t>, Lease> leases_;  // (session, lease)
  std::map<std::uint64_t, std::vector<std::uint8_t>> taken_;         // by lease: the chunks that do not count
};

}  // namespace motley::sim

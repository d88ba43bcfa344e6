#pragma once
// What a run keeps and tells of its steps: ledger and checkpoints on disk; steps, eval points, evaluations and the
// end as events. One thread at a time: the coordinator's mailbox.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/head/coordinator.h"
#include "plan/clipping_cost.h"
#include "plan/round_price.h"
#include "report/sink.h"
#include "runtime/head/events.h"
#include "runtime/persist/persister.h"
#include "store/checkpoint.h"

namespace motley::runtime {

struct JournalOptions {
  std::string run_dir;
  double checkpoint_seconds = 0;  // see checkpoint_due()
  std::uint32_t incarnation = 0;
  std::uint64_t eval_point_every = 0;  // steps; 0: eval points are where epochs begin
  bool has_accuracy = true;
  std::uint64_t local_steps = 0;      // of a round; 0: steps are exact
  std::uint64_t rounds_possible = 0;  // then: of so many steps; 0: they are not
  plan::RunOutline outline{};
  std::vector<std::string> scores;  // names; an "accuracy" among them is that of the evaluation
  SinceEvalPoint since_eval_point;
  /// Fills in what a checkpoint needs besides the server's snapshot.
  store::CheckpointContent checkpoint_base;
};

class Journal {
 public:
  /// `tell` is called on another thread: events of the disk. REQUIRES `engine` and `sink` outlive this.
  Journal(JournalOptions options, engine::Coordinator& engine, store::LedgerWriter ledger, report::Sink& sink,
          const std::function<void(report::Event)>& tell);

  /// The run begins, or goes on, where the engine stands.
  void begin();
  /// `done`: the step as an event, complete.
  void step(const engine::StepClosed& step, const report::StepDone& done);
  void evaluated(const engine::Evaluated& evaluation);
  /// `round`: all samples of a round, where rounds are possible.
  void planned(const engine::Planned& plan, const std::optional<engine::Planned>& round);
  /// Who looked at the paused run let it go on, and maybe changed its state.
  void resumed(const engine::Resume& resume, bool eval_point);
  [[nodiscard]] report::EvalDone event(const engine::Evaluated& evaluation) const;
  void write_checkpoint();
  /// All is on disk when it returns; the newest checkpoint. Nothing may follow but done().
  Result<std::filesystem::path> drain() { return persister_.drain(); }
  [[nodiscard]] report::Done done(const std::string& checkpoint) const;

 private:
  void note_position(std::uint64_t step);
  void report_eval_point(const engine::StepClosed& step);
  void advise(const report::StepDone& done);
  [[nodiscard]] bool wants_checkpoint();

  JournalOptions options_;
  engine::Coordinator& engine_;
  report::Sink& sink_;
  Persister persister_;
  Time started_{}, last_checkpoint_{};
  double snapshot_seconds_ = 0;             // that steps waited for the last checkpoint
  std::uint64_t epoch_ = 0, position_ = 0;  // where the next step starts
  std::uint64_t steps_ = 0, samples_ = 0;   // of this process
  double steady_seconds_ = 0;
  bool advised_rounds_ = false;
  std::uint64_t steady_samples_ = 0, verified_ = 0;
  double last_loss_ = 0, accuracy_ = 0, predicted_samples_per_s_ = 0;
  std::optional<plan::ClippingCost> clipping_;  // where a step is clipped by its own norm
  double cosine_sum_ = 0;
  std::uint64_t cosines_ = 0;
  report::Noise noise_;
  bool evaluated_once_ = false;
};

}  // namespace motley::runtime

// What a run that is resumed goes on with.

#include <algorithm>
#include <iterator>

#include "engine/coordinator.h"
#include "ps/outer_rate.h"
#include "runtime/head/run.h"
#include "store/checkpoint.h"
#include "store/redo.h"
#include "store/release_files.h"

namespace motley::runtime {
namespace fs = std::filesystem;

// The state of the newest checkpoint, and over it the steps of the redo log as far as the ledger knows them.
Status Run::restore(ps::Snapshot& snapshot) {
  std::vector<std::string> warnings;
  Result<store::CheckpointContent> content = store::read_latest_checkpoint(dir->path(), warnings);
  for (const std::string& warning : warnings) sink.take(report::Note{warning});
  if (!content) {
    // Killed before its first checkpoint: no step was kept, and the initial weights follow from the configuration.
    const Result<store::Ledger> history = store::read_ledger(dir->path() / "ledger");
    const bool begun = fs::exists(dir->path() / "checkpoints" / "latest") || !history || !history->steps.empty();
    if (begun) return content.error();
    token.run = history->header.run;
    return check_mode();
  }
  if (const std::string what = difference(initial.layout, content->layout); !what.empty()) {
    return Error{ErrorCode::mismatch, "the checkpoint is of another model: " + what,
                 "resume with the model the run was started with"};
  }
  if (Status same = check_mode(); !same) return same;
  token.run = content->run;
  snapshot.version = content->step;
  snapshot.weights = std::move(content->weights);
  snapshot.optimizer = std::move(content->optimizer);
  if (initial.optimizer) initial.optimizer->updates_before = content->updates_before;
  return {};
}

// What was said of steps that are lost is lost with them.
void Run::follow_rates(std::uint64_t version) {
  std::vector<ps::FollowedRates>& rates = initial.followed;
  const auto reached = std::ranges::find_if(rates, [&](const ps::FollowedRates& r) { return r.first_step > version; });
  for (auto next = rates.begin(); next != reached; ++next) server->follow(std::move(*next));
  rates.erase(rates.begin(), reached);
}

// The rate of a round's step is that of those who contributed, whom the ledger knows.
Status Run::rate_by_workers(const store::Ledger& history, std::uint64_t step) {
  if (!config::rate_by_workers(config)) return {};
  const auto found = std::ranges::lower_bound(history.steps, step, {}, &store::LedgerStep::step);
  const std::size_t workers = found != history.steps.end() && found->step == step ? store::contributors(*found) : 0;
  if (workers == 0)
    return Error{ErrorCode::input, "the ledger does not say who contributed to round " + std::to_string(step), ""};
  server->follow(step, ps::outer_rate(workers));
  return {};
}

Status Run::replay(std::uint64_t from, std::optional<double>& norm_before) {
  Result<store::Ledger> history = store::read_ledger(dir->path() / "ledger");
  if (!history) return history.error();
  const std::uint64_t known = history->steps.empty() ? 0 : history->steps.back().step + 1;
  batch_changes = std::move(history->batch_changes);
  follow_rates(from);
  Result<std::uint64_t> reached =
      store::replay_redo(dir->path(), from, [&](std::uint64_t step, std::span<const SharedBytes> gradients) {
        if (step >= known || step >= last_step()) return Status(Error{ErrorCode::input, "the ledger ends here", ""});
        if (Status rated = rate_by_workers(*history, step); !rated) return rated;
        Status done = server->redo(gradients);
        if (done) follow_rates(server->version());
        return done;
      });
  (void)reached;  // a log that ends early costs the steps after it, which are done again
  // Those of steps that are lost are lost with them.
  const auto to_come = [&](const BatchChange& each) { return each.first_step >= server->version(); };
  std::erase_if(batch_changes, to_come);
  std::ranges::copy_if(initial.batches, std::back_inserter(batch_changes), to_come);
  if (config::in_rounds(config)) owed = store::owed(*history, server->version());
  const auto before = std::ranges::find(history->steps, server->version() - 1, &store::LedgerStep::step);
  if (before != history->steps.end()) norm_before = before->gradient_norm;
  return restore_holds(*history);
}

Status Run::restore_holds(const store::Ledger& history) {
  const std::uint64_t version = server->version();
  store::roll_back_releases(dir->path(), version);
  hold_owed = store::read_released(dir->path()) < version;
  if (initial.state) loss_state = {1, *initial.state};
  Result<LossState> kept = store::read_state(dir->path(), version);
  if (!kept) return kept.error();
  if (kept->number > 0) loss_state = std::move(*kept);
  if (version == 0) return {};
  const std::uint64_t mark =
      modes::Marks{options.holds == modes::Holds::never ? 0 : sizes().evaluate_every}.before(batches(), version);
  for (const store::LedgerStep& step : history.steps)
    if (step.step >= mark && step.step < version) since_mark.add(step, 0, server->learning_rate(0, step.step));
  return {};
}

}  // namespace motley::runtime

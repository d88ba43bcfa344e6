// What a run that is resumed goes on with.

#include <algorithm>
#include <iterator>

#include "engine/head/coordinator.h"
#include "runtime/head/run.h"
#include "store/checkpoint.h"
#include "store/release_files.h"

namespace motley::runtime {
namespace fs = std::filesystem;

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
  initial.optimizer.updates_before = content->updates_before;
  return {};
}

// What was said of steps that are lost is lost with them.
void Run::follow_rates() {
  std::erase_if(initial.followed, [&](const auto& rates) { return rates.first_step > server->version(); });
  for (const ps::FollowedRates& rates : initial.followed) server->follow(rates);
}

// Of steps before the open one the server knows what their schedule says, not what was said meanwhile.
double Run::rate_of(std::uint64_t step) const {
  const auto later = std::ranges::upper_bound(initial.followed, step, {}, &ps::FollowedRates::first_step);
  return later == initial.followed.begin() ? server->learning_rate(0, step) : std::prev(later)->lr.at(0);
}

Status Run::restore_history(std::optional<double>& norm_before) {
  Result<store::Ledger> history = store::read_ledger(dir->path() / "ledger");
  if (!history) return history.error();
  const std::uint64_t version = server->version();
  batch_changes = std::move(history->batch_changes);
  const auto to_come = [version](const BatchChange& each) { return each.first_step >= version; };
  std::erase_if(batch_changes, to_come);
  std::ranges::copy_if(initial.batches, std::back_inserter(batch_changes), to_come);
  if (config::in_rounds(config)) owed = store::owed(*history, version);
  const auto before = std::ranges::find(history->steps, version - 1, &store::LedgerStep::step);
  if (before != history->steps.end()) norm_before = before->gradient_norm;
  return restore_holds(*history);
}

Status Run::restore_holds(const store::Ledger& history) {
  const std::uint64_t version = server->version();
  store::roll_back_releases(dir->path(), version);
  pause_owed = store::read_released(dir->path()) < version;
  if (initial.state) loss_state = {1, *initial.state};
  Result<LossState> kept = store::read_state(dir->path(), version);
  if (!kept) return kept.error();
  if (kept->number > 0) loss_state = std::move(*kept);
  if (version == 0) return {};
  const std::uint64_t eval_point =
      modes::EvalPoints{options.pauses == modes::Pauses::never ? 0 : sizes().evaluate_every}.before(batches(), version);
  for (const store::LedgerStep& step : history.steps)
    if (step.step >= eval_point && step.step < version) since_eval_point.add(step, 0, rate_of(step.step));
  return {};
}

}  // namespace motley::runtime

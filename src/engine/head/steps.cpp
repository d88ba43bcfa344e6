#include "engine/head/steps.h"

#include <algorithm>
#include <set>
#include <string>

#include "base/assert.h"
#include "modes/rounds/round_plan.h"
#include "ps/outer_rate.h"

namespace motley::engine {

// By name: who came back in between is the same one.
void StepMaker::rate_by_workers(const cluster::CoordinatorMachine& machine, const KnownWorkers& workers,
                                ChunkId first) {
  if (rated_ == server_.version()) return;
  rated_ = server_.version();
  std::set<std::string> names;
  for (const auto& piece : machine.coverage().pieces(first))
    names.insert(workers.at(machine.lease(piece.lease)->worker).name);
  server_.follow(server_.version(), ps::outer_rate(names.size()));
}

void StepMaker::reduce(ChunkId chunk, const modes::Coverage& coverage, StepNorms& norms) {
  last_reduced_ = chunk;
  if (on_device_.device() != nullptr) return on_device_.collect(chunk, coverage);
  parts_.clear();
  const std::size_t elements = server_.layout().chunks()[chunk].elements;
  norm_parts_.clear();
  for (const auto& piece : coverage.pieces(chunk)) {
    const double weight_of = coverage.find(piece.lease)->weight;
    parts_.push_back(uploads_.encoded(piece.lease, chunk, elements));
    norm_parts_.push_back({piece.range, weight_of});
  }
  // A pass without a single loss-bearing item has a gradient of zero, not zero divided by zero.
  const double weight = coverage.weight();
  const bool gradient = server_.layout().chunks()[chunk].kind != ChunkKind::statistics;
  const std::span<double> squares = gradient ? norms.of(norm_parts_) : std::span<double>();
  norms.add_mean(server_.reduce(chunk, parts_, weight > 0 ? weight : 1, coverage.positions(), squares));
  for (const auto& piece : coverage.pieces(chunk)) uploads_.release(piece.lease, chunk);
}

StepClosed StepMaker::describe(const cluster::CoordinatorMachine& machine, const KnownWorkers& workers, Time now) {
  const auto& pass = *machine.pass();
  const modes::Coverage& coverage = machine.coverage();
  const double norm = on_device_.device() != nullptr ? on_device_.gradient_norm() : server_.gradient_norm();
  StepClosed step{.step = machine.version(),
                  .epoch = pass.range.epoch,
                  .samples = pass.range.count,
                  .weight = coverage.weight(),
                  .loss_sum = coverage.loss_sum(),
                  .gradient_norm = norm,
                  .learning_rate = server_.learning_rate(0, machine.version()),
                  .noise = {},
                  .global_batch = machine.batches().batch(machine.version()),
                  .duration = now - pass.opened,
                  .closed = now,
                  .verified = 0,
                  .ranges = {},
                  .workers = {}};
  for (const modes::PassWork::Claim& claim : machine.claims()) step.verified += claim.range.count;
  if (!pass.spans.empty()) step.owed = machine.owed();
  std::uint64_t covered = 0;
  for (const auto& piece : coverage.pieces(last_reduced_)) {
    MOTLEY_ASSERT(piece.range.first == covered || !pass.spans.empty());
    covered += piece.range.count;
    const fleet::WorkerId worker = machine.lease(piece.lease)->worker;
    const KnownWorker& from = workers.at(worker);
    if (pass.spans.empty()) step.ranges.push_back({piece.range.first, piece.range.count, from.name});
    for (const Owed& part : modes::parts_of(pass.spans, pass.spans.empty() ? modes::Interval{} : piece.range)) {
      const CommittedRange range{part.first, part.count, from.name};
      if (part.step == step.step) {
        step.ranges.push_back(range);
      } else {
        step.late.push_back({part.step, range});
      }
    }
    const auto known = std::ranges::find(step.workers, worker, &WorkerStep::worker);
    if (known != step.workers.end()) {
      known->samples += piece.range.count;
      continue;
    }
    step.workers.push_back({worker, from.name, piece.range.count, from.compute_seconds, from.wait_seconds,
                            from.finish_seconds, machine.lease(piece.lease)->overlapped});
  }
  MOTLEY_ASSERT(covered == pass.range.count || !pass.spans.empty());
  step.samples = covered;
  return step;
}

}  // namespace motley::engine

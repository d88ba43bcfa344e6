#include "plan/forecast.h"

#include <algorithm>

#include "base/assert.h"
#include "plan/shares.h"

namespace motley::plan {
namespace {

/// `least_link_seconds`: that the coordinator's link is busy in the shortest step with a share for it.
Outlook outlook(const MeasuredWorker& worker, const Request& request, std::uint64_t samples, double least_link_seconds,
                const StepOverhead& step_overhead, std::uint32_t passes) {
  const auto total = static_cast<double>(request.total);
  const double least = worker.exposed_seconds + worker.compute.seconds(static_cast<double>(request.grain));
  return {.name = {},
          .samples = samples,
          .alone_samples_per_second = total / worker.alone_seconds.value_or(worker.compute.seconds(total)),
          .compute_seconds = samples == 0 ? 0 : worker.compute.seconds(static_cast<double>(samples)),
          .exposed_seconds = worker.exposed_seconds,
          .least_step_seconds = step_overhead.added_to(std::max(least_link_seconds, least), passes),
          .codec = worker.codec,
          .up_bytes_per_second = worker.up_bytes_per_second,
          .down_bytes_per_second = worker.down_bytes_per_second};
}

}  // namespace

void MeasuredWorker::add_steps(std::uint64_t more) noexcept {
  const double seconds = static_cast<double>(more) * compute.fixed;
  compute.fixed += seconds;
  if (candidate.time) candidate.time->fixed += seconds;
}

Forecast forecast(const ForecastInput& input, const StepOverhead& step_overhead, std::uint32_t passes) {
  MOTLEY_ASSERT(!input.members.empty());
  const Request& request = input.request;
  std::vector<Candidate> candidates;
  for (const MeasuredWorker& member : input.members) candidates.push_back(member.candidate);
  const Plan plan = make_plan(request, allowing_for_spread(candidates));
  const std::optional<double> alone = input.members.size() == 1 ? input.members[0].alone_seconds : std::nullopt;
  const double shared = expected_seconds(request.link_seconds, candidates, plan.counts);
  Forecast made;
  StepOutlook& step = made.step;
  step.seconds = std::max(1e-9, alone.value_or(step_overhead.added_to(shared, passes)));
  step.samples_per_second = static_cast<double>(request.total) / step.seconds;
  step.update_seconds = alone ? 0 : std::max(0.0, step.seconds - shared);
  step.link_seconds = input.link_seconds * static_cast<double>(senders(candidates, plan.counts));
  const auto add = [&](const MeasuredWorker& worker, std::uint64_t samples) {
    const double link = worker.candidate.remote ? step.link_seconds + input.link_seconds : 0;
    Outlook& added = made.workers.emplace_back(outlook(worker, request, samples, link, step_overhead, passes));
    // A shorter one would have a share for it.
    if (samples == 0) added.least_step_seconds = std::max(added.least_step_seconds, step.seconds);
  };
  for (std::size_t i = 0; i < input.members.size(); ++i) add(input.members[i], plan.counts[i]);
  for (const MeasuredWorker& each : input.parked) add(each, 0);
  if (alone) {  // nothing goes by wire, and computing is part of the step
    made.workers[0].exposed_seconds = 0;
    made.workers[0].compute_seconds = std::min(made.workers[0].compute_seconds, step.seconds);
  }
  return made;
}

double lost_samples(std::span<const Affine> passes, double update_seconds) noexcept {
  double lost = 0;
  for (const Affine& pass : passes) lost += (pass.fixed + std::max(0.0, update_seconds)) / pass.per_sample;
  return lost;
}

}  // namespace motley::plan

// What the passes to come are expected to take, for people.

#include <utility>

#include "engine/head/performance.h"

namespace motley::engine {

std::optional<double> MeasuredPerformance::evaluation_seconds(std::uint64_t total,
                                                              std::span<const fleet::WorkerId> members) const {
  const std::vector<plan::Candidate> known = candidates(PassKind::evaluate, members);
  if (!plan::measured(known)) return std::nullopt;
  return plan::make_plan(request(PassKind::evaluate, total, members), plan::allowing_for_spread(known)).seconds;
}

std::optional<std::vector<plan::MeasuredWorker>> MeasuredPerformance::measured(
    std::uint64_t total, std::span<const fleet::WorkerId> workers) const {
  std::vector<plan::MeasuredWorker> found;
  for (const fleet::WorkerId worker : workers) {
    const WorkerPerformance& about = workers_.of(worker);
    const std::optional<plan::Affine> compute = about.train.device().time();
    if (!compute) return std::nullopt;
    found.push_back({.candidate = candidate(PassKind::train, worker),
                     .compute = *compute,
                     .exposed_seconds = about.train.wire().expected(),
                     .alone_seconds = about.train.step_alone(total),
                     .codec = std::string(codec::to_word(about.link.codec())),
                     .up_bytes_per_second = about.link.up_bytes_per_second(),
                     .down_bytes_per_second = about.link.down_bytes_per_second()});
  }
  return found;
}

std::optional<Planned> MeasuredPerformance::forecast(std::uint64_t total, std::span<const fleet::WorkerId> members,
                                                     std::span<const fleet::WorkerId> parked,
                                                     std::uint64_t local_steps) const {
  auto sharing = measured(total, members);
  const auto waiting = measured(total, parked);
  if (members.empty() || !step_overhead_.seconds() || !fixed_.empty() || !sharing || !waiting) return std::nullopt;
  plan::Request wanted = request(PassKind::train, total, members);
  if (local_steps > 1) {
    wanted.grain = local_steps * sizes_.grain;
    for (plan::MeasuredWorker& each : *sharing) each.add_steps(local_steps - 1);
  }
  std::vector<fleet::WorkerId> all(members.begin(), members.end());
  all.insert(all.end(), parked.begin(), parked.end());
  plan::Forecast made =
      plan::forecast({.request = wanted, .members = *sharing, .parked = *waiting, .link_seconds = link_seconds(all)},
                     step_overhead_, settling_.passes());
  Planned planned;
  planned.global_batch = total;
  planned.step = made.step;
  planned.workers = std::move(made.workers);
  return planned;
}

std::optional<double> MeasuredPerformance::lost_samples() const {
  if (news_.sharing().empty() || !step_overhead_.seconds()) return std::nullopt;
  std::vector<plan::Affine> passes;
  for (const fleet::WorkerId worker : news_.sharing()) {
    std::optional<plan::Affine> pass = workers_.of(worker).train.device().time();
    if (!pass) return std::nullopt;
    pass->fixed += workers_.of(worker).train.wire().seconds().value_or(0);
    passes.push_back(*pass);
  }
  return plan::lost_samples(passes, *step_overhead_.seconds());
}

}  // namespace motley::engine

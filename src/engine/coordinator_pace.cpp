#include "engine/coordinator_pace.h"

#include <algorithm>
#include <array>

#include "base/assert.h"

namespace motley::engine {
namespace {

constexpr double kNewestExposed = 0.2;
constexpr double kSlowestBelieved = 3;  // times the mean
// Two sizes tell fixed costs from costs per sample. The first calibration warms up: its time says nothing.
constexpr std::array<std::uint64_t, 3> kCalibrations{16, 16, 4};  // parts of the batch
constexpr double kLeastGain = 0.01;                               // of a step, for which a worker is worth its energy
// A worker that was left out because of its link is tried again in the end.
constexpr double kExposedWhileParked = 0.97;
constexpr std::uint32_t kStepsAloneTold = 30;  // of a worker by itself, before its speed is told
constexpr double kYear = 365.0 * 86400;        // keeps conversions to integer nanoseconds defined

Duration duration(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(std::min(kYear, seconds)));
}

}  // namespace

std::optional<plan::Affine> MeasuredPace::Known::time() const noexcept {
  std::optional<plan::Affine> time = compute.affine();
  if (time) time->fixed += exposed.value_or(0);
  if (!time && whole_per_sample > 0) time = plan::Affine{0, whole_per_sample};
  return time;
}

std::optional<plan::Affine> MeasuredPace::time(const Kind& kind, cluster::WorkerId worker) const {
  if (!fixed_.empty()) {
    if (worker <= fixed_.size()) return plan::Affine{0, 1 / fixed_[worker - 1]};
    double sum = 0;
    for (const double share : fixed_) sum += share;
    return plan::Affine{0, static_cast<double>(fixed_.size()) / sum};  // nobody gave a share to those who came later
  }
  return worker <= kind.known.size() ? kind.known[worker - 1].time() : std::nullopt;
}

void MeasuredPace::split(PassKind kind, std::uint64_t total, std::span<const cluster::WorkerId> workers, bool reissue,
                         std::span<std::uint64_t> counts) {
  MOTLEY_ASSERT(!workers.empty() && workers.size() == counts.size());
  Kind& passes = of(kind);
  candidates_.clear();
  for (const cluster::WorkerId worker : workers) candidates_.push_back({.time = time(passes, worker)});
  const bool comparable =
      !reissue && fixed_.empty() && total == passes.total && std::ranges::equal(workers, passes.workers);
  const plan::Plan plan =
      plan::make_plan({.total = total, .grain = grain_}, candidates_,
                      comparable ? std::span<const std::uint64_t>(passes.counts) : std::span<const std::uint64_t>());
  MOTLEY_ASSERT(plan.counts.size() == counts.size());
  std::ranges::copy(plan.counts, counts.begin());
  if (reissue) return;
  if (kind == PassKind::train) {
    slowest_ = 0;
    sharing_.clear();
    for (std::size_t i = 0; i < workers.size(); ++i)
      if (counts[i] > 0) sharing_.push_back(workers[i]);
  }
  passes.total = total;
  passes.workers.assign(workers.begin(), workers.end());
  passes.counts.assign(counts.begin(), counts.end());
}

plan::Outlook MeasuredPace::outlook(cluster::WorkerId worker, std::uint64_t total, std::uint64_t samples) const {
  const Known& about = train_.known[worker - 1];
  const plan::Affine compute = *about.compute.affine();
  const double exposed = about.exposed.value_or(0);
  return {.name = {},
          .samples = samples,
          .alone_samples_per_second = static_cast<double>(total) / compute.seconds(static_cast<double>(total)),
          .compute_seconds = samples == 0 ? 0 : compute.seconds(static_cast<double>(samples)),
          .exposed_seconds = exposed,
          .least_step_seconds = exposed + compute.seconds(static_cast<double>(grain_)) + update_.value_or(0)};
}

std::optional<Planned> MeasuredPace::forecast(std::uint64_t total, std::span<const cluster::WorkerId> members,
                                              std::span<const cluster::WorkerId> parked) {
  const auto measured = [&](cluster::WorkerId worker) {
    return worker <= train_.known.size() && train_.known[worker - 1].compute.affine();
  };
  if (members.empty() || !update_ || !fixed_.empty() || !std::ranges::all_of(members, measured) ||
      !std::ranges::all_of(parked, measured)) {
    return std::nullopt;
  }
  candidates_.clear();
  for (const cluster::WorkerId worker : members) candidates_.push_back({.time = time(train_, worker)});
  const plan::Plan plan = plan::make_plan({.total = total, .grain = grain_}, candidates_);
  Planned planned;
  planned.global_batch = total;
  const std::optional<double> alone = step_alone(members, total);
  planned.step_seconds = alone.value_or(plan.seconds + *update_);
  planned.samples_per_second = static_cast<double>(total) / planned.step_seconds;
  for (std::size_t i = 0; i < members.size(); ++i)
    planned.workers.push_back(outlook(members[i], total, plan.counts[i]));
  if (alone) planned.workers[0].exposed_seconds = 0;  // nothing goes by wire
  for (const cluster::WorkerId worker : parked) planned.workers.push_back(outlook(worker, total, 0));
  return planned;
}

void MeasuredPace::closed(Duration time) {
  const double update = std::max(0.0, seconds(time) - slowest_);
  update_ = update_ ? *update_ + kNewestExposed * (update - *update_) : update;
}

Duration MeasuredPace::allowance(PassKind kind, cluster::WorkerId worker, std::uint64_t samples) const {
  const Kind& passes = of(kind);
  const std::optional<plan::Affine> time =
      worker <= passes.known.size() ? passes.known[worker - 1].time() : std::nullopt;
  if (!time) return timeouts_.lease_unknown;
  return std::max<Duration>(timeouts_.lease_min, 3 * duration(time->seconds(static_cast<double>(samples))));
}

std::uint64_t MeasuredPace::calibration(cluster::WorkerId worker) const {
  if (!fixed_.empty()) return 0;
  const std::uint32_t done = worker <= train_.known.size() ? train_.known[worker - 1].calibrations : 0;
  if (done >= kCalibrations.size()) return 0;
  const std::uint64_t grains = batch_ / kCalibrations[done] / grain_;
  return std::min(std::max<std::uint64_t>(1, grains) * grain_, batch_);
}

cluster::Pace::Verdict MeasuredPace::judge(std::uint64_t total, std::span<const cluster::WorkerId> members,
                                           cluster::WorkerId worker) {
  if (!fixed_.empty()) return {};
  candidates_.clear();
  for (const cluster::WorkerId member : members) {
    candidates_.push_back({.time = time(train_, member)});
    if (!candidates_.back().time) return {};
  }
  const std::optional<plan::Affine> mine = time(train_, worker);
  if (!mine) return {};  // what its link costs is not in it before its first pass
  double without = plan::make_plan({.total = total, .grain = grain_}, candidates_).seconds;
  if (const std::optional<double> alone = step_alone(members, total))
    without = std::min(without, *alone - update_.value_or(0));  // plans are without the update
  candidates_.push_back({.time = mine});
  const plan::Plan with = plan::make_plan({.total = total, .grain = grain_}, candidates_);
  if (with.counts.back() > 0 && with.seconds <= (1 - kLeastGain) * without) return {};
  const double least = std::max(with.seconds, mine->seconds(static_cast<double>(grain_)));
  return {.pays = false, .with = duration(least), .without = duration(without)};
}

std::optional<double> MeasuredPace::step_alone(std::span<const cluster::WorkerId> members, std::uint64_t total) const {
  if (members.size() != 1 || members[0] > train_.known.size()) return std::nullopt;
  const Known& only = train_.known[members[0] - 1];
  const std::optional<plan::Affine> compute = only.compute.affine();
  if (!only.alone || !compute) return std::nullopt;
  return compute->seconds(static_cast<double>(total)) + *only.alone;
}

void MeasuredPace::alone(cluster::WorkerId worker, std::uint64_t samples, double compute_seconds, double step_seconds) {
  Known& about = known(PassKind::train, worker);
  about.compute.record(samples, compute_seconds);
  if (++about.steps_alone == kStepsAloneTold) told_.clear();
  if (about.steps_alone == 1) return;  // it makes its own copies of everything
  const double beyond = std::max(0.0, step_seconds - compute_seconds);
  about.alone = about.alone ? *about.alone + kNewestExposed * (beyond - *about.alone) : beyond;
}

MeasuredPace::Known& MeasuredPace::known(PassKind kind, cluster::WorkerId worker) {
  std::vector<Known>& all = of(kind).known;
  if (all.size() < worker) all.resize(worker);
  return all[worker - 1];
}

void MeasuredPace::elapsed(PassKind kind, cluster::WorkerId worker, cluster::LeaseId lease, std::uint64_t samples,
                           Duration time) {
  Known& about = known(kind, worker);
  about.elapsed = {lease, seconds(time)};
  if (kind == PassKind::train) slowest_ = std::max(slowest_, seconds(time));
  about.whole_per_sample = seconds(time) / static_cast<double>(samples);
  pair_up(about);
}

void MeasuredPace::computed(PassKind kind, cluster::WorkerId worker, cluster::LeaseId lease, std::uint64_t samples,
                            double seconds) {
  Known& about = known(kind, worker);
  about.computed = {lease, seconds};
  about.compute.record(samples, seconds);
  pair_up(about);
}

void MeasuredPace::calibrated(cluster::WorkerId worker, std::uint64_t samples, double seconds) {
  if (samples == 0) return;
  Known& about = known(PassKind::train, worker);
  if (about.calibrations++ > 0) about.compute.record(samples, seconds);
  if (about.calibrations > kCalibrations.size() && about.exposed) *about.exposed *= kExposedWhileParked;
}

void MeasuredPace::pair_up(Known& known) {
  if (known.elapsed.lease == 0 || known.elapsed.lease != known.computed.lease) return;
  double exposed = std::max(0.0, known.elapsed.seconds - known.computed.seconds);
  if (known.exposed) {
    exposed = std::min(exposed, kSlowestBelieved * (*known.exposed + known.computed.seconds));
    exposed = *known.exposed + kNewestExposed * (exposed - *known.exposed);
  }
  known.exposed = exposed;
}

}  // namespace motley::engine

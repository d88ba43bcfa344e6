#include "engine/head/performance.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/assert.h"
#include "compute/pass_sizes.h"

namespace motley::engine {
namespace {

constexpr std::uint64_t kPassMost = 1U << 30;  // samples
constexpr double kYear = 365.0 * 86400;        // keeps conversions to integer nanoseconds defined

Duration duration(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(std::min(kYear, seconds)));
}

modes::PerformanceModel::Verdict in_time(const plan::Verdict& verdict) {
  return {.pays = verdict.pays, .with = duration(verdict.with), .without = duration(verdict.without)};
}

}  // namespace

plan::Affine MeasuredPerformance::fixed_share(fleet::WorkerId worker) const {
  if (worker <= fixed_.size()) return {0, 1 / fixed_[worker - 1]};
  // Nobody gave a share to those who came later.
  return {0, static_cast<double>(fixed_.size()) / std::accumulate(fixed_.begin(), fixed_.end(), 0.0)};
}

plan::Candidate MeasuredPerformance::candidate(PassKind kind, fleet::WorkerId worker) const {
  const WorkerPerformance& about = workers_.of(worker);
  if (!fixed_.empty()) return {.time = fixed_share(worker), .remote = about.link.remote()};
  return about.speed(kind).candidate(about.link.remote(), kind == PassKind::train ? link_seconds({&worker, 1}) : 0);
}

std::vector<plan::Candidate> MeasuredPerformance::candidates(PassKind kind,
                                                             std::span<const fleet::WorkerId> workers) const {
  std::vector<plan::Candidate> found;
  for (const fleet::WorkerId worker : workers) found.push_back(candidate(kind, worker));
  return found;
}

double MeasuredPerformance::link_seconds(std::span<const fleet::WorkerId> workers) const {
  if (!fixed_.empty()) return 0;
  double least = std::numeric_limits<double>::infinity();
  for (const fleet::WorkerId worker : workers) {
    const codec::CodecId codec = gradients_.value_or(this->codec(worker));
    if (workers_.of(worker).link.remote())
      least = std::min(least, contribution_bytes_[static_cast<std::size_t>(codec)]);
  }
  return std::isfinite(least) ? shared_link_.seconds(least) : 0;
}

plan::Request MeasuredPerformance::request(PassKind kind, std::uint64_t total,
                                           std::span<const fleet::WorkerId> workers) const {
  if (kind != PassKind::train) return {.total = total, .grain = sizes_.grain};
  // In rounds every local step of a share has the same number of grains; the last round of an epoch has fewer steps.
  const std::uint64_t batch = std::max<std::uint64_t>(1, sizes_.batch);
  const std::uint64_t steps = std::clamp<std::uint64_t>((total + batch - 1) / batch, 1, local_steps_);
  return {.total = total, .grain = steps * sizes_.grain, .link_seconds = link_seconds(workers)};
}

void MeasuredPerformance::split(PassKind kind, std::uint64_t total, std::span<const fleet::WorkerId> workers,
                                bool reissue, std::span<std::uint64_t> counts) {
  MOTLEY_ASSERT(!workers.empty() && workers.size() == counts.size());
  const std::vector<plan::Candidate> known = candidates(kind, workers);
  const plan::Request wanted = request(kind, total, workers);
  if (kind == PassKind::train && total != train_.total()) comparison_.interrupted();
  const plan::Plan plan = (kind == PassKind::evaluate ? evaluate_ : train_).split(wanted, known, workers, reissue);
  MOTLEY_ASSERT(plan.counts.size() == counts.size());
  std::ranges::copy(plan.counts, counts.begin());
  if (!reissue && fixed_.empty()) round_to_passes(wanted, workers, counts);
  if (kind != PassKind::train) return;
  if (reissue) return step_overhead_.expect(0);  // whoever takes over what was lost, it takes longer than planned
  step_overhead_.expect(plan::expected_seconds(wanted.link_seconds, known, counts));
  std::vector<fleet::WorkerId> sharing;
  head_part_ = 0;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    if (counts[i] == 0) continue;
    sharing.push_back(workers[i]);
    const double part = static_cast<double>(counts[i]) / static_cast<double>(total);
    workers_.at(workers[i]).part = part;
    if (!workers_.of(workers[i]).link.remote()) head_part_ += part;
  }
  if (sharing != news_.sharing()) begin_others(sharing);
  news_.shared(sharing);
  const std::size_t senders = plan::senders(known, counts);
  for (const fleet::WorkerId worker : sharing)
    if (workers_.of(worker).link.remote())
      workers_.at(worker).train.wire().expect_senders(senders, link_seconds({&worker, 1}));
}

void MeasuredPerformance::round_to_passes(const plan::Request& wanted, std::span<const fleet::WorkerId> workers,
                                          std::span<std::uint64_t> counts) const {
  const std::uint64_t steps = wanted.grain / sizes_.grain;  // of a round
  std::vector<std::uint64_t> units;
  for (const fleet::WorkerId worker : workers) {
    const WorkerPerformance& about = workers_.of(worker);
    const auto full = static_cast<std::uint32_t>(std::min(about.micro_batch, kPassMost));
    const std::uint64_t odd = about.pass_sizes ? compute::pass_sizes(full, 1, true).odd : 1;
    units.push_back(odd > 1 && odd % sizes_.grain == 0 ? odd * steps : 1);
  }
  plan::round_shares(counts, units, wanted.grain);
}

void MeasuredPerformance::begin_others(std::span<const fleet::WorkerId> sharing) {
  settling_.begin();
  if (sharing.size() < 2 || std::ranges::equal(sharing, together_)) return comparison_.interrupted();
  together_.assign(sharing.begin(), sharing.end());
  comparison_.begin();
}

Duration MeasuredPerformance::allowance(PassKind kind, fleet::WorkerId worker, std::uint64_t samples) const {
  constexpr double kPatience = 3;
  return times_predicted(kPatience, kind, worker, samples);
}

Duration MeasuredPerformance::deadline(PassKind kind, fleet::WorkerId worker, std::uint64_t samples) const {
  constexpr double kPatience = 1.5;
  return times_predicted(kPatience, kind, worker, samples);
}

// A contribution goes the way that the first version came, and others may go it at the same time. That took as long as
// the worker says; beyond a bound, not longer than twice what another one says.
Duration MeasuredPerformance::guess(fleet::WorkerId worker) const {
  constexpr double kVersions = 2, kOfAnother = 2, kOwnWord = 5;
  double believed = kOwnWord * seconds(timeouts_.lease_unknown);
  for (fleet::WorkerId other = 1; other <= workers_.size(); ++other)
    if (other != worker) believed = std::max(believed, kOfAnother * workers_.of(other).train.wire().expected());
  const double version = std::min(workers_.of(worker).train.wire().expected(), believed);
  return std::min<Duration>(timeouts_.lease_unknown + duration(kVersions * version), timeouts_.lease_max);
}

Duration MeasuredPerformance::times_predicted(double factor, PassKind kind, fleet::WorkerId worker,
                                              std::uint64_t samples) const {
  const std::optional<plan::Affine> time = workers_.of(worker).speed(kind).time();
  if (!time) return guess(worker);
  const Duration predicted = duration(time->seconds(static_cast<double>(samples)));
  const auto patience = Duration(static_cast<Duration::rep>(factor * static_cast<double>(predicted.count())));
  return std::clamp<Duration>(patience, timeouts_.lease_min, timeouts_.lease_max);
}

Duration MeasuredPerformance::unheard_allowance(PassKind kind, fleet::WorkerId worker, std::uint64_t samples) const {
  const std::optional<plan::Affine> time = workers_.of(worker).speed(kind).time();
  if (!time) return guess(worker);
  const double predicted = time->seconds(static_cast<double>(samples));
  return std::min<Duration>(2 * duration(predicted), timeouts_.lease_max);
}

std::uint64_t MeasuredPerformance::calibration(fleet::WorkerId worker) const {
  return fixed_.empty() ? workers_.of(worker).train.device().calibration(sizes_) : 0;
}

std::uint64_t MeasuredPerformance::trial(fleet::WorkerId worker) const {
  return workers_.of(worker).train.device().trial(sizes_);
}

std::uint64_t MeasuredPerformance::unit(fleet::WorkerId worker) const {
  if (!fixed_.empty() || !workers_.of(worker).train.time()) return 0;
  const std::uint64_t samples = std::min(workers_.of(worker).micro_batch, sizes_.batch);
  return (samples + sizes_.grain - 1) / sizes_.grain * sizes_.grain;
}

std::optional<plan::Part> MeasuredPerformance::part_of(const Part& part) const {
  if (unit(part.worker) == 0) return std::nullopt;
  return plan::Part{.time = *workers_.of(part.worker).train.time(),
                    .micro_batch = workers_.of(part.worker).micro_batch,
                    .limit = part.limit,
                    .ceiling = part.ceiling,
                    .first = {part.first_samples, seconds(part.first_after)},
                    .newest = {part.samples, part.samples == 0 ? 0 : seconds(part.newest_after)},
                    .age = seconds(part.after)};
}

std::uint64_t MeasuredPerformance::shift(const Part& late, const Part& early) const {
  const std::optional<plan::Part> from = part_of(late), to = part_of(early);
  return from && to ? plan::worth_shifting(*from, *to, unit(early.worker)) : 0;
}

std::uint64_t MeasuredPerformance::relief(const Part& late, fleet::WorkerId helper, Duration pass_age) const {
  const std::optional<plan::Part> from = part_of(late), to = part_of({.worker = helper, .ceiling = late.limit});
  return from && to ? plan::worth_helping(*from, *to, unit(late.worker), seconds(pass_age)) : 0;
}

modes::PerformanceModel::Verdict MeasuredPerformance::judge(std::uint64_t total,
                                                            std::span<const fleet::WorkerId> members,
                                                            fleet::WorkerId worker) {
  const std::vector<plan::Candidate> known = candidates(PassKind::train, members);
  const plan::Candidate mine = candidate(PassKind::train, worker);
  if (!fixed_.empty() || !plan::measured(known) || !mine.time) return {};  // only passes tell
  std::vector<fleet::WorkerId> all(members.begin(), members.end());
  all.push_back(worker);
  std::optional<double> alone;
  if (members.size() == 1) alone = workers_.of(members[0]).train.step_alone(total);
  if (alone) {  // plans are without what holds up everybody, which is no part of the computing
    const double beside = std::max(0.0, *alone - workers_.of(members[0]).computes(total).value_or(0));
    *alone -= std::min(step_overhead_.seconds().value_or(0), beside);
  }
  Verdict verdict = in_time(plan::judge(request(PassKind::train, total, all), known, mine, alone));
  verdict.faster = verdict.pays && workers_.of(worker).train.faster();
  return verdict;
}

modes::PerformanceModel::Verdict MeasuredPerformance::compare(std::uint64_t total, fleet::WorkerId worker) {
  if (!fixed_.empty() || train_.total() != total) return {};
  return in_time(
      comparison_.compare(total, workers_.of(worker).train.step_alone(total), workers_.of(worker).computes(total)));
}

modes::PerformanceModel::Verdict MeasuredPerformance::resolve(std::uint64_t total) {
  return in_time(comparison_.resolve(total));
}

void MeasuredPerformance::elapsed(PassKind kind, fleet::WorkerId worker, modes::LeaseId lease, std::uint64_t samples,
                                  Duration time) {
  workers_.at(worker).speed(kind).elapsed(lease, samples, seconds(time));
}

void MeasuredPerformance::computed(PassKind kind, fleet::WorkerId worker, modes::LeaseId lease, std::uint64_t samples,
                                   double seconds) {
  workers_.at(worker).speed(kind).computed(lease, samples, seconds);
}

void MeasuredPerformance::late(fleet::WorkerId worker, modes::LeaseId lease, std::uint64_t samples, Duration time,
                               bool computes) {
  workers_.at(worker).train.late(lease, samples, seconds(time), computes);
}

void MeasuredPerformance::closed(Duration time) {
  const double took = seconds(time);
  comparison_.closed(took, settling_.settled());
  settling_.closed(took);
  step_overhead_.closed(took, settling_.passes());
  shared_link_.closed(senders());
}

std::size_t MeasuredPerformance::senders() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(news_.sharing(), [this](fleet::WorkerId each) { return workers_.of(each).link.remote(); }));
}

void MeasuredPerformance::weigh_codec(fleet::WorkerId worker) {
  WorkerPerformance& about = workers_.at(worker);
  const std::optional<plan::WorkerSpeed::Pass> pass = about.train.take_pass();
  if (!pass) return;
  const plan::ByCodec processors =
      plan::held_up({about.link.costs(), about.part}, {head_cost_, head_part_}, contribution_bytes_, open_);
  const double factor = about.link.closed(pass->compute_seconds, pass->exposed_seconds, processors);
  if (factor == 1) return;
  about.train.wire().scale(factor);
  comparison_.begin();
  news_.outdated();
}

void MeasuredPerformance::alone(fleet::WorkerId worker, std::uint64_t samples, double compute_seconds,
                                double step_seconds) {
  workers_.at(worker).train.alone(samples, compute_seconds, step_seconds);
  begin_others({&worker, 1});
  comparison_.alone(step_seconds);
  news_.alone(step_seconds);
}

void MeasuredPerformance::known_before(fleet::WorkerId worker, const plan::Affine& speed) {
  workers_.at(worker).train.device().known_before(speed);
}

void MeasuredPerformance::calibrated(fleet::WorkerId worker, std::uint64_t samples, double seconds) {
  if (samples == 0) return;
  if (!workers_.at(worker).train.calibrated(samples, seconds) || !workers_.of(worker).link.remote()) return;
  const std::size_t here = workers_.remotes_here(), sending = senders();
  shared_link_.fade(here > sending ? here - sending : 1);
}

void MeasuredPerformance::uses_micro_batch(fleet::WorkerId worker, std::uint64_t samples) {
  if (samples > 0) workers_.at(worker).micro_batch = samples;
}

void MeasuredPerformance::reached(fleet::WorkerId worker, Duration time) {
  WorkerPerformance& about = workers_.at(worker);
  const double took = seconds(time);
  if (about.train.wire().seconds()) return about.train.version(took);
  about.train.wire().first_version(took, about.link.first_version(took));
}

void MeasuredPerformance::sent(fleet::WorkerId worker, modes::LeaseId lease, const plan::Transfer& gradient) {
  WorkerPerformance& about = workers_.at(worker);
  const std::optional<double> end = about.train.elapsed(lease);
  if (!end) return;  // it was not taken as a whole
  if (const auto sender = about.link.sent(lease, gradient, *end)) shared_link_.sent(*sender);
}

}  // namespace motley::engine

#include "engine/coordinator_pace.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/assert.h"

namespace motley::engine {
namespace {

constexpr double kLeastGain = 0.01;          // of a step, for which a worker is worth its energy
constexpr double kSpreadToDeviation = 1.25;  // of a normal distribution
constexpr double kSpreadMax = 0.15;
constexpr double kColdSeconds = 1;  // the most that cold caches and connections cost
// Passes whose mean is compared with steps alone: the more of them, the smaller a loss is believed.
constexpr std::uint32_t kCompared = 16, kComparedLeast = 3;
constexpr double kDoubt = 0.2;  // what the mean of n is believed to be off by at the most: kDoubt (1/√n - 1/√kCompared)
constexpr double kClearGain = 1.25;  // over one worker alone, where none was measured: no need to compare
// Of a worker by itself, before its speed is told: so many steps, or fewer where they are long.
constexpr std::uint32_t kStepsAloneTold = 30, kStepsAloneLeast = 3;
constexpr double kSecondsAloneTold = 5;
// A gain too small to move shares at once is taken when it was there so many times in a row: that is no noise.
constexpr double kSmallGain = 0.01;
constexpr std::uint32_t kGainsLetGo = 4;
constexpr double kSlackLeast = 0.25;     // of a plan's seconds
constexpr double kYear = 365.0 * 86400;  // keeps conversions to integer nanoseconds defined

Duration duration(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(std::min(kYear, seconds)));
}

}  // namespace

double MeasuredPace::Known::waits() const noexcept {
  if (!exposed) return link_seconds;
  if (exposed_settled) return *exposed;
  const double doubted = 1 - static_cast<double>(std::max(1U, exposures)) / kExposuresBelieved;
  const double believed = *exposed - std::min(doubted * *exposed, kColdSeconds);
  return std::max(believed, std::min(*exposed, link_seconds));
}

std::optional<plan::Affine> MeasuredPace::Known::time() const noexcept {
  std::optional<plan::Affine> time = compute.affine();
  if (time) time->fixed += waits();
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

void MeasuredPace::gather(const Kind& kind, std::span<const cluster::WorkerId> workers) {
  candidates_.clear();
  double speed = 0;
  for (const cluster::WorkerId worker : workers) {
    candidates_.push_back(candidate(kind, worker));
    if (candidates_.back().time) speed += 1 / candidates_.back().time->per_sample;
  }
  if (!fixed_.empty()) return;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    std::optional<plan::Affine>& time = candidates_[i].time;
    if (!time || workers[i] > kind.known.size()) continue;
    // The expected end of the pass is least where each worker is the last one as often as its part of the work
    // (the derivative of E[max] by a shift of samples); the quantile of a normal distribution, as a straight line.
    const double part = 1 / time->per_sample / speed;
    const double deviations = 3 * (0.5 - part);
    if (deviations <= 0) continue;
    const double spread = kSpreadToDeviation * kind.known[workers[i] - 1].spread;
    time->fixed *= 1 + deviations * spread;
    time->per_sample *= 1 + deviations * spread;
  }
}

double MeasuredPace::expected_seconds(const Kind& kind, std::span<const cluster::WorkerId> workers,
                                      std::span<const std::uint64_t> counts) const {
  const auto sending = static_cast<double>(senders(workers, counts));
  double slowest = sending * link_seconds(kind, workers);
  for (std::size_t i = 0; i < workers.size(); ++i) {
    if (counts[i] == 0) continue;
    const plan::Candidate about = candidate(kind, workers[i]);
    if (!about.time) return 0;
    const double wait = about.remote ? about.wait * (sending - 1) : 0;
    slowest = std::max(slowest, wait + about.time->seconds(static_cast<double>(counts[i])));
  }
  return slowest;
}

plan::Request MeasuredPace::request(const Kind& kind, std::uint64_t total,
                                    std::span<const cluster::WorkerId> workers) const {
  return {.total = total, .grain = grain_, .link_seconds = link_seconds(kind, workers)};
}

void MeasuredPace::split(PassKind kind, std::uint64_t total, std::span<const cluster::WorkerId> workers, bool reissue,
                         std::span<std::uint64_t> counts) {
  MOTLEY_ASSERT(!workers.empty() && workers.size() == counts.size());
  Kind& passes = of(kind);
  gather(passes, workers);
  const bool comparable =
      !reissue && fixed_.empty() && total == passes.total && std::ranges::equal(workers, passes.workers);
  const plan::Request wanted = request(passes, total, workers);
  plan::Plan plan =
      plan::make_plan(wanted, candidates_,
                      comparable ? std::span<const std::uint64_t>(passes.counts) : std::span<const std::uint64_t>());
  if (!reissue) {
    passes.gains_let_go = plan.gain < kSmallGain ? 0 : passes.gains_let_go + 1;
    if (passes.gains_let_go > kGainsLetGo) {
      passes.gains_let_go = 0;
      plan = plan::make_plan(wanted, candidates_);
    }
  }
  MOTLEY_ASSERT(plan.counts.size() == counts.size());
  std::ranges::copy(plan.counts, counts.begin());
  if (reissue) return;
  if (kind == PassKind::train) {
    expected_ = expected_seconds(passes, workers, counts);
    const std::vector<cluster::WorkerId> before = std::exchange(sharing_, {});
    for (std::size_t i = 0; i < workers.size(); ++i)
      if (counts[i] > 0) sharing_.push_back(workers[i]);
    if (sharing_ != before) begin_comparison();
    alone_ = {};
    expect_senders(senders(workers, counts));
  }
  passes.total = total;
  passes.workers.assign(workers.begin(), workers.end());
  passes.counts.assign(counts.begin(), counts.end());
}

plan::Outlook MeasuredPace::outlook(cluster::WorkerId worker, std::uint64_t total, std::uint64_t samples,
                                    double link_seconds) const {
  const Known& about = train_.known[worker - 1];
  const plan::Affine compute = *about.compute.affine();
  const double exposed = about.exposed.value_or(about.link_seconds);
  const double alone = step_alone(worker, total).value_or(compute.seconds(static_cast<double>(total)));
  return {
      .name = {},
      .samples = samples,
      .alone_samples_per_second = static_cast<double>(total) / alone,
      .compute_seconds = samples == 0 ? 0 : compute.seconds(static_cast<double>(samples)),
      .exposed_seconds = exposed,
      .least_step_seconds = with_slack(std::max(link_seconds, exposed + compute.seconds(static_cast<double>(grain_)))),
      .codec = std::string(codec::to_word(about.codec.codec())),
      .up_bytes_per_second = about.up.bytes_per_second(),
      .down_bytes_per_second = about.down.bytes_per_second()};
}

std::optional<Planned> MeasuredPace::forecast(std::uint64_t total, std::span<const cluster::WorkerId> members,
                                              std::span<const cluster::WorkerId> parked) {
  const auto measured = [&](cluster::WorkerId worker) {
    return worker <= train_.known.size() && train_.known[worker - 1].compute.affine();
  };
  if (members.empty() || !slack_ || !fixed_.empty() || !std::ranges::all_of(members, measured) ||
      !std::ranges::all_of(parked, measured)) {
    return std::nullopt;
  }
  gather(train_, members);
  const plan::Plan plan = plan::make_plan(request(train_, total, members), candidates_);
  Planned planned;
  planned.global_batch = total;
  const std::optional<double> alone = step_alone(members, total);
  const double shared = expected_seconds(train_, members, plan.counts);
  planned.step.seconds = std::max(1e-9, alone.value_or(with_slack(shared)));
  planned.step.samples_per_second = static_cast<double>(total) / planned.step.seconds;
  planned.step.update_seconds = alone ? 0 : std::max(0.0, planned.step.seconds - shared);
  std::vector<cluster::WorkerId> all(members.begin(), members.end());
  all.insert(all.end(), parked.begin(), parked.end());
  const double link = link_seconds(train_, all);
  planned.step.link_seconds = link * static_cast<double>(senders(members, plan.counts));
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::uint64_t samples = i < members.size() ? plan.counts[i] : 0;
    planned.workers.push_back(outlook(all[i], total, samples, remote(all[i]) ? planned.step.link_seconds + link : 0));
  }
  for (plan::Outlook& worker : planned.workers)  // a shorter one would have a share for it
    if (worker.samples == 0) worker.least_step_seconds = std::max(worker.least_step_seconds, planned.step.seconds);
  if (alone) planned.workers[0].exposed_seconds = 0;  // nothing goes by wire
  return planned;
}

std::optional<double> MeasuredPace::evaluation_seconds(std::uint64_t total,
                                                       std::span<const cluster::WorkerId> members) {
  gather(evaluate_, members);
  if (!std::ranges::all_of(candidates_, [](const plan::Candidate& each) { return each.time.has_value(); })) return {};
  return plan::make_plan(request(evaluate_, total, members), candidates_).seconds;
}

// With T = (B + lost) / sum(1 / c_i) as the finish time of all; the update at the end holds up everybody.
std::optional<double> MeasuredPace::lost_samples() const {
  if (sharing_.empty() || !slack_) return std::nullopt;
  double lost = 0;
  for (const cluster::WorkerId worker : sharing_) {
    if (worker > train_.known.size()) return std::nullopt;
    const Known& about = train_.known[worker - 1];
    const std::optional<plan::Affine> compute = about.compute.affine();
    if (!compute) return std::nullopt;
    lost += (compute->fixed + about.exposed.value_or(0) + std::max(0.0, *slack_)) / compute->per_sample;
  }
  return lost;
}

// Passes that others helped to end may have been much shorter than planned; that says little about a plan of others.
// The first ones took longer because they were the first.
double MeasuredPace::with_slack(double seconds) const noexcept {
  const double slack = slack_.value_or(0) * std::min(1.0, static_cast<double>(passes_) / kExposuresBelieved);
  return seconds + std::max(slack, -kSlackLeast * seconds);
}

void MeasuredPace::begin_comparison() noexcept {
  passes_ = compared_ = 0;
  settling_seconds_ = 0;
}

void MeasuredPace::closed(Duration time) {
  if (settled()) {
    ++compared_;
  } else {
    settling_seconds_ += seconds(time);
  }
  ++passes_;
  weigh_shared_link();
  const double newest = 1.0 / std::clamp(compared_, 1U, kCompared);
  pass_seconds_ += newest * (seconds(time) - pass_seconds_);
  if (expected_ <= 0) return;
  const double slack = std::clamp(seconds(time) - expected_, -expected_, expected_);  // a loss is no measurement
  slack_ = slack_ && passes_ > 2 ? *slack_ + kNewest * (slack - *slack_) : slack;
}

void MeasuredPace::told() {
  told_ = sharing_;
  told_settled_ = settled();
  told_passes_ = passes_;
}

Duration MeasuredPace::allowance(PassKind kind, cluster::WorkerId worker, std::uint64_t samples) const {
  const Kind& passes = of(kind);
  const std::optional<plan::Affine> time =
      worker <= passes.known.size() ? passes.known[worker - 1].time() : std::nullopt;
  if (!time) return timeouts_.lease_unknown;
  return std::max<Duration>(timeouts_.lease_min, 3 * duration(time->seconds(static_cast<double>(samples))));
}

std::uint64_t MeasuredPace::grains(std::uint64_t samples) const noexcept {
  return std::max<std::uint64_t>(1, samples / grain_) * grain_;
}

cluster::Pace::Verdict MeasuredPace::judge(std::uint64_t total, std::span<const cluster::WorkerId> members,
                                           cluster::WorkerId worker) {
  if (!fixed_.empty()) return {};
  gather(train_, members);
  if (!std::ranges::all_of(candidates_, [](const plan::Candidate& each) { return each.time.has_value(); })) return {};
  const plan::Candidate mine = candidate(train_, worker);
  if (!mine.time) return {};  // what its link costs is not in it before its first pass
  std::vector<cluster::WorkerId> all(members.begin(), members.end());
  all.push_back(worker);
  const plan::Request request = this->request(train_, total, all);
  const plan::Plan before = plan::make_plan(request, candidates_);
  double without = before.seconds;
  if (const std::optional<double> alone = step_alone(members, total))
    without = std::min(without, *alone - slack_.value_or(0));  // plans are without what holds up everybody
  candidates_.push_back(mine);
  const plan::Plan with = plan::make_plan(request, candidates_);
  if (with.counts.back() > 0 && with.seconds <= (1 - kLeastGain) * without)
    return {.faster = train_.known[worker - 1].faster};
  const auto others = static_cast<double>(senders(members, before.counts));
  double least = mine.remote ? (others + 1) * request.link_seconds : 0;
  for (plan::Candidate& each : candidates_) {  // if it did send, beside those that do
    if (mine.remote && each.remote) each.time->fixed += others * std::exchange(each.wait, 0);
  }
  least = std::max(least, candidates_.back().time->seconds(static_cast<double>(grain_)));
  least = std::max(least, plan::make_plan({.total = total, .grain = grain_}, candidates_).seconds);
  return {.pays = false, .with = duration(least), .without = duration(without)};
}

cluster::Pace::Verdict MeasuredPace::compare(std::uint64_t total, cluster::WorkerId worker) {
  if (!fixed_.empty() || compared_ < kComparedLeast || train_.total != total || worker > train_.known.size()) return {};
  const std::uint32_t compared = std::min(kCompared, compared_);
  const double doubt = kDoubt * (1 / std::sqrt(compared) - 1 / std::sqrt(kCompared));
  const double least = pass_seconds_ / (1 + doubt);
  if (const std::optional<double> alone = step_alone(worker, total)) {
    if (least <= *alone) return {};
    return {.pays = false, .with = duration(pass_seconds_), .without = duration(*alone)};
  }
  const std::optional<plan::Affine> compute = train_.known[worker - 1].compute.affine();
  if (!compute) return {};
  const double alone = compute->seconds(static_cast<double>(total));
  if (compared < kCompared ? least <= alone : kClearGain * pass_seconds_ < alone) return {};
  doubted_ = {pass_seconds_, total};
  return {.pays = false};
}

cluster::Pace::Verdict MeasuredPace::resolve(std::uint64_t total, cluster::WorkerId worker) const {
  const std::optional<double> alone = step_alone(worker, total);
  if (!alone || doubted_.total != total || doubted_.seconds <= *alone) return {};
  return {.pays = false, .with = duration(doubted_.seconds), .without = duration(*alone)};
}

std::optional<double> MeasuredPace::step_alone(cluster::WorkerId worker, std::uint64_t total) const {
  const std::optional<plan::Affine> alone =
      worker <= train_.known.size() ? train_.known[worker - 1].alone.affine() : std::nullopt;
  if (!alone) return std::nullopt;
  return alone->seconds(static_cast<double>(total));
}

std::optional<double> MeasuredPace::step_alone(std::span<const cluster::WorkerId> members, std::uint64_t total) const {
  return members.size() == 1 ? step_alone(members[0], total) : std::nullopt;
}

void MeasuredPace::alone(cluster::WorkerId worker, std::uint64_t samples, double compute_seconds, double step_seconds) {
  Known& about = known(PassKind::train, worker);
  about.compute.record(samples, compute_seconds);
  if (about.made_steps) about.alone.record(samples, step_seconds);
  about.made_steps = true;  // in the first it makes its own copies of everything
  begin_comparison();
  ++alone_.steps;
  alone_.seconds += step_seconds;
  const bool known =
      alone_.steps >= kStepsAloneTold || (alone_.steps >= kStepsAloneLeast && alone_.seconds >= kSecondsAloneTold);
  if (known && !std::exchange(alone_.told, true)) told_.clear();
}

MeasuredPace::Known& MeasuredPace::known(PassKind kind, cluster::WorkerId worker) {
  std::vector<Known>& all = of(kind).known;
  while (all.size() < worker) all.emplace_back().codec = plan::CodecChoice(follows_);
  return all[worker - 1];
}

void MeasuredPace::elapsed(PassKind kind, cluster::WorkerId worker, cluster::LeaseId lease, std::uint64_t samples,
                           Duration time) {
  Known& about = known(kind, worker);
  if (about.elapsed.lease != lease) about.elapsed_before = about.elapsed;
  about.elapsed = {lease, seconds(time)};
  if (const std::optional<plan::Affine> expected = about.exposed ? about.time() : std::nullopt) {
    const double predicted = expected->seconds(static_cast<double>(samples));
    const double off = std::min(kSpreadMax, std::abs(seconds(time) - predicted) / predicted);
    about.spread += kNewest * (off - about.spread);
  }
  about.whole_per_sample = seconds(time) / static_cast<double>(samples);
  pair_up(about);
}

void MeasuredPace::computed(PassKind kind, cluster::WorkerId worker, cluster::LeaseId lease, std::uint64_t samples,
                            double seconds) {
  Known& about = known(kind, worker);
  about.computed = {lease, seconds};
  about.compute.record(samples, seconds);
  about.faster = false;
  pair_up(about);
}

void MeasuredPace::late(cluster::WorkerId worker, cluster::LeaseId lease, std::uint64_t samples, Duration time,
                        bool computes) {
  Known& about = known(PassKind::train, worker);
  const std::optional<plan::Affine> expected = about.compute.affine();
  if (!expected || samples == 0) return;
  const double predicted = expected->seconds(static_cast<double>(samples));
  if (computes) {
    if (seconds(time) > predicted) about.compute.record(samples, seconds(time));
    return;
  }
  about.computed = {lease, predicted};
  elapsed(PassKind::train, worker, lease, samples, time);
}

}  // namespace motley::engine

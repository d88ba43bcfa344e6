#include "plan/worker_speed.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace motley::plan {
namespace {

constexpr double kNewestSpread = 0.2;  // of the mean
constexpr double kSpreadMax = 0.15;    // beyond that it is no noise but a change, which the models follow

}  // namespace

void WorkerSpeed::elapsed(std::uint64_t lease, std::uint64_t samples, double seconds) noexcept {
  if (elapsed_.lease != lease) elapsed_before_ = elapsed_;
  elapsed_ = {lease, seconds};
  if (const std::optional<Affine> expected = wire_.seconds() ? time() : std::nullopt) {
    const double predicted = expected->seconds(static_cast<double>(samples));
    const double off = std::min(kSpreadMax, std::abs(seconds - predicted) / predicted);
    spread_ += kNewestSpread * (off - spread_);
  }
  whole_per_sample_ = seconds / static_cast<double>(samples);
  pair_up();
}

void WorkerSpeed::computed(std::uint64_t lease, std::uint64_t samples, double seconds) noexcept {
  computed_ = {lease, seconds};
  device_.record(samples, seconds);
  faster_ = false;
  pair_up();
}

void WorkerSpeed::pair_up() noexcept {
  if (elapsed_.lease == 0 || elapsed_.lease != computed_.lease) return;
  wire_.pass(elapsed_.seconds, computed_.seconds);
  pass_ = {computed_.seconds, std::max(0.0, elapsed_.seconds - computed_.seconds)};
}

void WorkerSpeed::late(std::uint64_t lease, std::uint64_t samples, double seconds, bool computes) noexcept {
  const std::optional<Affine> expected = device_.time();
  if (!expected || samples == 0) return;
  const double predicted = expected->seconds(static_cast<double>(samples));
  if (computes) {
    if (seconds > predicted) device_.record(samples, seconds);
    return;
  }
  computed_ = {lease, predicted};
  elapsed(lease, samples, seconds);
}

bool WorkerSpeed::calibrated(std::uint64_t samples, double seconds) noexcept {
  switch (device_.calibrated(samples, seconds)) {
    case DeviceSpeed::Tried::measured:
      break;
    case DeviceSpeed::Tried::as_ever:
      wire_.fade();
      return true;
    case DeviceSpeed::Tried::faster:
      wire_.forget();
      faster_ = true;
      break;
  }
  return false;
}

void WorkerSpeed::alone(std::uint64_t samples, double compute_seconds, double step_seconds) noexcept {
  device_.record(samples, compute_seconds);
  // In the first it makes its own copies of everything.
  if (std::exchange(made_steps_, true)) alone_.record(samples, step_seconds);
}

std::optional<Affine> WorkerSpeed::time() const noexcept {
  std::optional<Affine> time = device_.time();
  if (time) time->fixed += wire_.believed();
  if (!time && whole_per_sample_ > 0) time = Affine{0, whole_per_sample_};
  return time;
}

Candidate WorkerSpeed::candidate(bool remote, double link_seconds) const noexcept {
  Candidate each{.time = time(), .remote = remote, .wait = wire_.for_each_sender(link_seconds), .spread = spread_};
  if (each.time) each.time->fixed -= wire_.for_senders(link_seconds);
  return each;
}

std::optional<double> WorkerSpeed::step_alone(std::uint64_t samples) const noexcept {
  const std::optional<Affine> alone = alone_.affine();
  return alone ? std::optional(alone->seconds(static_cast<double>(samples))) : std::nullopt;
}

std::optional<double> WorkerSpeed::elapsed(std::uint64_t lease) const noexcept {
  if (lease == elapsed_.lease) return elapsed_.seconds;
  return lease == elapsed_before_.lease ? std::optional(elapsed_before_.seconds) : std::nullopt;
}

}  // namespace motley::plan

// What devices do beside the run: before they take part, and while they are parked.

#include <algorithm>
#include <cmath>

#include "engine/coordinator_pace.h"

namespace motley::engine {
namespace {

// Calibrations: one that warms up (its time says nothing), one of the same size that tells how many samples make a long
// one, the long one, and one of a quarter of it. Two sizes tell fixed costs from costs per sample, and long ones see
// what a device can keep up: a processor with a quota, or one that turbos, is fast for some milliseconds.
constexpr std::uint32_t kCalibrations = 4;
constexpr std::uint64_t kFirstCalibration = 16;  // this part of the batch
constexpr double kLongCalibration = 0.4;         // seconds
constexpr std::uint32_t kWarm = 1;               // the first is done
constexpr double kFasterAgain = 1.3;             // a parked worker whose trial was so much faster is measured anew
constexpr double kStillTrue = 0.25;              // an earlier run's model that is further off is dropped
constexpr double kTrial = 0.2;                   // seconds of a parked worker's
// A worker that was left out because of its link is tried again in the end.
constexpr double kExposedWhileParked = 0.97;

}  // namespace

std::uint64_t MeasuredPace::calibration(cluster::WorkerId worker) const {
  if (!fixed_.empty()) return 0;
  const Known unknown;
  const Known& about = worker <= train_.known.size() ? train_.known[worker - 1] : unknown;
  const std::uint64_t first = grains(batch_ / kFirstCalibration);
  const auto long_one = [&](double per_sample) {
    return std::max(2 * first, grains(static_cast<std::uint64_t>(kLongCalibration / per_sample)));
  };
  switch (about.calibrations) {
    case 0:
      return first;
    case 1:
      return about.known_before ? long_one(about.compute.affine()->per_sample) : first;
    case 2:
      return about.known_before ? 0 : long_one(about.trial_seconds / static_cast<double>(about.trial_samples));
    case 3:
      return grains(about.trial_samples / 4);
    default:
      return 0;
  }
}

std::uint64_t MeasuredPace::trial(cluster::WorkerId worker) const {
  const std::optional<plan::Affine> compute =
      worker <= train_.known.size() ? train_.known[worker - 1].compute.affine() : std::nullopt;
  if (!compute) return grain_;
  const double samples = std::max(0.0, kTrial - compute->fixed) / compute->per_sample;
  return grains(static_cast<std::uint64_t>(std::min(samples, static_cast<double>(batch_))));
}

void MeasuredPace::known_before(cluster::WorkerId worker, const plan::Affine& speed) {
  Known& about = known(PassKind::train, worker);
  if (about.compute.affine()) return;  // it was here before: what this run learned is newer
  about.compute = plan::TimeModel(speed);
  about.known_before = true;
}

void MeasuredPace::calibrated(cluster::WorkerId worker, std::uint64_t samples, double seconds) {
  if (samples == 0) return;
  Known& about = known(PassKind::train, worker);
  if (about.known_before && about.calibrations == 1) {
    const double expected = about.compute.affine()->seconds(static_cast<double>(samples));
    if (std::abs(seconds - expected) > kStillTrue * expected) {
      about.compute = {};
      about.known_before = false;
    }
  }
  if (about.calibrations >= kCalibrations && about.compute.affine() &&
      kFasterAgain * seconds < about.compute.affine()->seconds(static_cast<double>(samples))) {
    about.compute = {};
    about.known_before = false;
    about.calibrations = kWarm;
    about.exposed.reset();  // its processor does both
    about.exposures = 0;
    about.exposed_settled = false;
    about.faster = true;
  }
  if (about.calibrations++ > 0) about.compute.record(samples, seconds);
  about.trial_samples = samples;
  about.trial_seconds = std::max(1e-6, seconds);
  if (about.calibrations <= kCalibrations) return;
  if (about.remote) shared_link_.fade();
  about.link_seconds *= kExposedWhileParked;
  if (!about.exposed) return;
  *about.exposed *= kExposedWhileParked;
  about.exposures = 0;  // if it is taken in, its first pass says more than all before
}

}  // namespace motley::engine

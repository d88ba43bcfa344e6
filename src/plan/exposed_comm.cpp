#include "plan/exposed_comm.h"

#include <algorithm>
#include <cmath>

#include "plan/link_model.h"

namespace motley::plan {
namespace {

constexpr double kVaries = 0.25;     // from pass to pass, as a part of the noise
constexpr double kLeastPart = 0.01;  // of the computing: waits that are shorter vary as much as one of that
constexpr double kShortestWait = 1e-15, kLongestWait = 3.2e7;  // seconds: a year
// The first passes pay for cold caches and connections: what they wait counts in full only when there were so many of
// them. Before that a part, and what is beyond the most that cold ones cost.
constexpr std::uint32_t kPassesBelieved = 4;
constexpr double kColdSeconds = 1;
// Among the first so many a shorter one counts half: with a small batch two equal machines would have unequal shares
// for twenty steps.
constexpr std::uint32_t kPassesWarm = 8;
constexpr double kNewestWarm = 0.5;
constexpr double kFasterLink = 0.5;  // times as long as when the share was lost: it may do now

}  // namespace

void ExposedComm::pass(double elapsed, double computed) noexcept {
  const double exposed = std::clamp(elapsed - computed, 0.0, kLongestWait);
  // The first pass pays for first touch.
  if (++passes_ <= 2 || !seconds_) {
    seconds_ = exposed;
    innovations_ = Innovations(kNoise);
    variance_ = innovations_.noise();
  } else {
    measured(exposed, std::max({*seconds_, kLeastPart * computed, kShortestWait}));
  }
  settled_ = settled_ || passes_ >= kPassesBelieved;
  without_.reset();
}

void ExposedComm::measured(double exposed, double scale) noexcept {
  variance_ += std::pow(kVaries, 2) * innovations_.noise();
  const Innovation innovation = innovations_.judge((exposed - *seconds_) / scale, variance_);
  if (innovation.change) {
    variance_ = innovation.noise;
    seconds_ = std::max(0.0, *seconds_ + innovation.off * scale);
    return;
  }
  variance_ += innovation.grown;
  double gain = variance_ / (variance_ + innovation.noise);
  variance_ *= 1 - gain;
  if (passes_ <= kPassesWarm && exposed < *seconds_) gain = std::max(gain, kNewestWarm);
  seconds_ = std::max(0.0, *seconds_ + gain * innovation.off * scale);
}

void ExposedComm::first_version(double seconds, double part) noexcept {
  version_seconds_ = seconds >= kSlowVersion ? part * seconds : 0;
}

bool ExposedComm::version(double seconds) noexcept {
  if (!without_) {
    without_ = {seconds, *seconds_};
    return false;
  }
  const double part = seconds / without_->version_seconds;
  if (!(part < kFasterLink)) return false;
  seconds_ = std::min(*seconds_, part * without_->exposed);
  passes_ = 0;
  return true;
}

void ExposedComm::fade() noexcept {
  version_seconds_ *= kFade;
  if (!seconds_) return;
  *seconds_ *= kFade;
  passes_ = 0;  // if it gets a share, its first pass says more than all before
}

void ExposedComm::forget() noexcept {
  seconds_.reset();
  passes_ = 0;
  settled_ = false;
}

void ExposedComm::scale(double factor) noexcept {
  if (!seconds_) return;
  *seconds_ *= factor;
  passes_ = 1;  // the next pass says more than this
}

void ExposedComm::expect_senders(std::size_t senders, double link_seconds) noexcept {
  const double more = static_cast<double>(senders) - static_cast<double>(senders_);
  if (seconds_ && more != 0) *seconds_ += more * for_each_sender(link_seconds);
  senders_ = senders;
}

double ExposedComm::believed() const noexcept {
  if (!seconds_) return version_seconds_;
  if (settled_) return *seconds_;
  const double doubted = 1 - static_cast<double>(std::max(1U, passes_)) / kPassesBelieved;
  const double believed = *seconds_ - std::min(doubted * *seconds_, kColdSeconds);
  return std::max(believed, std::min(*seconds_, version_seconds_));
}

double ExposedComm::for_each_sender(double link_seconds) const noexcept {
  return seconds_ ? std::min(link_seconds, believed() / static_cast<double>(senders_)) : link_seconds;
}

double ExposedComm::for_senders(double link_seconds) const noexcept {
  return seconds_ ? static_cast<double>(senders_ - 1) * for_each_sender(link_seconds) : 0;
}

}  // namespace motley::plan

#include "plan/slack.h"

#include <algorithm>

namespace motley::plan {
namespace {

constexpr double kNewestSlack = 0.2;         // of the mean
constexpr std::uint32_t kPassesOfSlack = 4;  // the first took longer because they were the first
// Of a plan's seconds: passes that others helped to end may have been much shorter than planned, which says little
// about a plan of others.
constexpr double kSlackLeast = 0.25;

}  // namespace

void Slack::closed(double seconds, std::uint32_t passes) noexcept {
  if (expected_ <= 0) return;
  const double slack = std::clamp(seconds - expected_, -expected_, expected_);
  slack_ = slack_ && passes > 2 ? *slack_ + kNewestSlack * (slack - *slack_) : slack;
}

double Slack::added_to(double seconds, std::uint32_t passes) const noexcept {
  const double slack = slack_.value_or(0) * std::min(1.0, static_cast<double>(passes) / kPassesOfSlack);
  return seconds + std::max(slack, -kSlackLeast * seconds);
}

}  // namespace motley::plan

#include "plan/batch_size.h"

#include <algorithm>
#include <cmath>

#include "base/assert.h"

namespace motley::plan {
namespace {

// The noise scale is a mean over many steps: sooner, it has not seen the change before.
constexpr std::uint64_t kStepsBetween = 50;
// Progress a second is flat around the best batch; small changes would only cost clarity.
constexpr double kWorthChanging = 1.25;

}  // namespace

std::optional<BatchSize> next_batch(const BatchRule& rule, std::uint64_t batch, std::uint64_t steps_since_change,
                                    double noise_scale, double useful) {
  MOTLEY_ASSERT(rule.grain > 0 && rule.first > 0 && rule.most >= rule.first && batch > 0);
  if (steps_since_change < kStepsBetween || !std::isfinite(useful)) return std::nullopt;
  const auto now = static_cast<double>(batch);
  const double least = static_cast<double>(rule.first);
  const double wanted = std::clamp(useful, least, static_cast<double>(rule.most));
  if (wanted < kWorthChanging * now && wanted > now / kWorthChanging) return std::nullopt;
  const auto samples = static_cast<std::uint64_t>(std::clamp(wanted, now / 2, now * 2));
  const std::uint64_t next = std::clamp(samples / rule.grain * rule.grain, rule.first, rule.most);
  if (next == batch) return std::nullopt;
  return BatchSize{next, rate_for(rule, next, noise_scale)};
}

double rate_for(const BatchRule& rule, std::uint64_t batch, double noise_scale) noexcept {
  const auto first = static_cast<double>(rule.first);
  const auto now = static_cast<double>(batch);
  if (rule.adaptive) return std::sqrt(now / first);
  const double bend = std::max(first, noise_scale);
  return now <= bend ? now / first : bend / first * std::sqrt(now / bend);
}

}  // namespace motley::plan

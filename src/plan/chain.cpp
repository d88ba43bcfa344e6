#include "plan/chain.h"

#include <algorithm>

namespace motley::plan {
namespace {

constexpr double kWorth = 0.02, kStillWorth = 0.01;  // parts of a step

}  // namespace

std::optional<double> chain_gain(const Chained& of) noexcept {
  if (of.workers < 2 || of.bytes_per_second.empty()) return std::nullopt;
  const auto [slowest, fastest] = std::ranges::minmax(of.bytes_per_second);
  if (slowest <= 0) return std::nullopt;
  const double own = of.own.value_or(fastest), count = static_cast<double>(of.workers);
  const double star = std::max(count * of.bytes / own, of.bytes / slowest);
  const double chain = (of.bytes + (count - 1) * of.hop_bytes) / std::min(slowest, own);
  return star - chain;
}

bool chain_pays(std::optional<double> gain, double step_seconds, bool on) noexcept {
  return gain && *gain > (on ? kStillWorth : kWorth) * step_seconds;
}

}  // namespace motley::plan

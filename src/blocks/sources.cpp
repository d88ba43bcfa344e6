#include "blocks/sources.h"

#include <algorithm>

#include "base/assert.h"

namespace motley::blocks {
namespace {

constexpr double kMemorySeconds = 3;

}  // namespace

double Sources::Source::rate(Time now) const {
  const double waits = open.empty() ? 0 : std::max(0.0, motley::seconds(now - since));
  return bytes > 0 ? bytes / std::max(seconds + waits, 1e-9) : 0;
}

std::vector<Sources::Open> Sources::drop(Id id) {
  std::vector<Open> left;
  const auto found = sources_.find(id);
  if (found == sources_.end()) return left;
  for (const auto& [hash, block] : found->second.open) left.push_back(block);
  sources_.erase(found);
  return left;
}

// Who is not known yet is taken for the best of the others.
Sources::Id Sources::choose(std::size_t bytes, bool waited_for, Time now) const {
  MOTLEY_ASSERT(!sources_.empty());
  double best = 0;
  for (const auto& [id, source] : sources_) best = std::max(best, source.rate(now));
  if (best == 0) best = 1;
  Id chosen = sources_.begin()->first;
  double soonest = 0;
  for (const auto& [id, source] : sources_) {
    double before = static_cast<double>(bytes);
    for (const auto& [hash, block] : source.open)
      if (block.waited_for || !waited_for) before += static_cast<double>(block.bytes);
    const double rate = source.rate(now);
    const double takes = before / (rate > 0 ? rate : best);
    if (id == sources_.begin()->first || takes < soonest) {
      chosen = id;
      soonest = takes;
    }
  }
  return chosen;
}

void Sources::ask(Id id, const Open& block, Time now) {
  Source& source = sources_.at(id);
  if (source.open.empty()) source.since = now;
  const bool fresh = source.open.try_emplace(block.hash, block).second;
  MOTLEY_ASSERT(fresh);
}

std::optional<Sources::Id> Sources::asked(const Hash& hash) const {
  const auto found = std::ranges::find_if(sources_, [&](const auto& each) { return each.second.open.contains(hash); });
  if (found == sources_.end()) return std::nullopt;
  return found->first;
}

void Sources::hurry(const Hash& hash) {
  for (auto& [id, source] : sources_)
    if (const auto found = source.open.find(hash); found != source.open.end()) found->second.waited_for = true;
}

bool Sources::take(Id id, const Hash& hash, Time now) {
  const auto found = sources_.find(id);
  if (found == sources_.end()) return false;
  Source& source = found->second;
  const auto block = source.open.find(hash);
  if (block == source.open.end()) return false;
  source.seconds += std::max(0.0, motley::seconds(now - source.since));
  source.bytes += static_cast<double>(block->second.bytes);
  source.since = now;
  if (source.seconds > kMemorySeconds) {
    source.bytes *= kMemorySeconds / source.seconds;
    source.seconds = kMemorySeconds;
  }
  source.open.erase(block);
  return true;
}

std::vector<Sources::Id> Sources::stalled(Time now) const {
  std::vector<Id> all;
  for (const auto& [id, source] : sources_)
    if (!source.open.empty() && now - source.since >= kStalledAfter) all.push_back(id);
  return all;
}

std::size_t Sources::open() const noexcept {
  std::size_t all = 0;
  for (const auto& [id, source] : sources_) all += source.open.size();
  return all;
}

}  // namespace motley::blocks

#include "modes/rounds/round_plan.h"

#include <algorithm>

#include "base/assert.h"

namespace motley::modes {

std::uint64_t positions(std::span<const Owed> spans) noexcept {
  std::uint64_t sum = 0;
  for (const Owed& span : spans) sum += span.count;
  return sum;
}

RoundSpans parts_of(std::span<const Owed> spans, Interval interval) {
  RoundSpans parts;
  std::uint64_t before = 0;
  for (const Owed& span : spans) {
    const std::uint64_t first = std::max(before, interval.first);
    const std::uint64_t end = std::min(before + span.count, interval.end());
    if (first < end) parts.push_back({span.step, span.first + (first - before), end - first});
    before += span.count;
  }
  MOTLEY_ASSERT(interval.end() <= before);
  return parts;
}

Interval first_part(std::span<const Owed> spans, Interval interval, std::uint64_t most, std::size_t pieces) noexcept {
  MOTLEY_ASSERT(most > 0 && pieces > 0);
  interval.count = std::min(interval.count, most);
  std::uint64_t before = 0;
  for (const Owed& span : spans) {
    before += span.count;
    if (before <= interval.first || --pieces > 0) continue;
    return {interval.first, std::min(interval.end(), before) - interval.first};
  }
  return interval;
}

RoundSpans take_first(RoundSpans& from, std::uint64_t most) {
  RoundSpans taken;
  std::size_t whole = 0;
  while (whole < from.size() && taken.size() < kOwedPiecesMax && most > 0) {
    Owed& piece = from[whole];
    const std::uint64_t count = std::min(piece.count, most);
    taken.push_back({piece.step, piece.first, count});
    most -= count;
    piece.first += count;
    piece.count -= count;
    if (piece.count == 0) ++whole;
  }
  from.erase(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(whole));
  return taken;
}

void append(RoundSpans& to, const Owed& piece) {
  if (!to.empty() && to.back().step == piece.step && to.back().first + to.back().count == piece.first) {
    to.back().count += piece.count;
  } else {
    to.push_back(piece);
  }
}

std::vector<Interval> slices(std::span<const std::uint64_t> counts, std::uint64_t unit) {
  MOTLEY_ASSERT(unit > 0);
  std::uint64_t total = 0;
  for (const std::uint64_t count : counts) total += count;
  std::vector<Interval> result(counts.size());
  std::uint64_t wanted = 0, first = 0;
  std::size_t last = counts.size();  // who had a slice last
  for (std::size_t i = 0; i < counts.size(); ++i) {
    wanted += counts[i];
    if (counts[i] == 0) continue;
    const std::uint64_t end = wanted == total ? total : std::min(total, (wanted + unit / 2) / unit * unit);
    if (end - first < unit && last < counts.size()) {
      result[last].count += end - first;
      first = end;
    } else if (end > first) {
      result[i] = {first, end - first};
      first = end;
      last = i;
    }
  }
  MOTLEY_ASSERT(first == total);
  return result;
}

}  // namespace motley::modes

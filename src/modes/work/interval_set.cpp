#include "modes/work/interval_set.h"

#include <algorithm>

#include "base/assert.h"

namespace motley::modes {

std::size_t IntervalSet::find(std::uint64_t position) const noexcept {
  const auto it = std::partition_point(ranges_.begin(), ranges_.end(),
                                       [&](const Interval& range) { return range.end() <= position; });
  return static_cast<std::size_t>(it - ranges_.begin());
}

void IntervalSet::insert(Interval interval) {
  if (interval.count == 0) return;
  MOTLEY_ASSERT(interval.end() > interval.first);
  // Touching ranges are merged, so the search starts one position to the left.
  const auto begin = find(interval.first == 0 ? 0 : interval.first - 1);
  auto end = begin;
  Interval merged = interval;
  std::uint64_t absorbed = 0;
  for (; end < ranges_.size() && ranges_[end].first <= interval.end(); ++end) {
    const std::uint64_t first = std::min(merged.first, ranges_[end].first);
    merged = {first, std::max(merged.end(), ranges_[end].end()) - first};
    absorbed += ranges_[end].count;
  }
  size_ += merged.count - absorbed;
  const auto at = ranges_.begin() + static_cast<std::ptrdiff_t>(begin);
  if (begin == end) {
    ranges_.insert(at, merged);
  } else {
    *at = merged;
    ranges_.erase(at + 1, ranges_.begin() + static_cast<std::ptrdiff_t>(end));
  }
}

void IntervalSet::erase(Interval interval) {
  if (interval.count == 0) return;
  for (std::size_t i = find(interval.first); i < ranges_.size() && ranges_[i].first < interval.end();) {
    const Interval range = ranges_[i];
    const std::uint64_t cut_first = std::max(range.first, interval.first);
    const std::uint64_t cut_end = std::min(range.end(), interval.end());
    size_ -= cut_end - cut_first;
    const Interval left{range.first, cut_first - range.first};
    const Interval right{cut_end, range.end() - cut_end};
    const auto at = ranges_.begin() + static_cast<std::ptrdiff_t>(i);
    if (left.count > 0 && right.count > 0) {
      *at = left;
      ranges_.insert(at + 1, right);
      return;
    }
    if (left.count > 0) {
      *at = left;
      ++i;
    } else if (right.count > 0) {
      *at = right;
      return;
    } else {
      ranges_.erase(at);
    }
  }
}

bool IntervalSet::contains(Interval interval) const noexcept {
  if (interval.count == 0) return true;
  const std::size_t i = find(interval.first);
  return i < ranges_.size() && interval.within(ranges_[i]);
}

bool IntervalSet::overlaps(Interval interval) const noexcept {
  if (interval.count == 0) return false;
  const std::size_t i = find(interval.first);
  return i < ranges_.size() && ranges_[i].first < interval.end();
}

}  // namespace motley::modes

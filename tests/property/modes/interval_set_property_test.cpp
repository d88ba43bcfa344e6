#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>
#include <utility>
#include <vector>

#include "modes/work/interval_set.h"

namespace motley::modes {
namespace {

using Edit = std::pair<bool, std::pair<int, int>>;  // insert?, first, count

RC_GTEST_PROP(IntervalSetProperty, BehavesLikeASetOfNumbers, (const std::vector<Edit>& edits)) {
  IntervalSet set;
  std::set<std::uint64_t> model;
  for (const auto& [insert, place] : edits) {
    const Interval interval{static_cast<std::uint64_t>(place.first & 63),
                            static_cast<std::uint64_t>(place.second & 15)};
    insert ? set.insert(interval) : set.erase(interval);
    bool all = true, any = false;
    for (std::uint64_t p = interval.first; p < interval.end(); ++p) {
      insert ? void(model.insert(p)) : void(model.erase(p));
      all = all && model.count(p) > 0;
      any = any || model.count(p) > 0;
    }
    RC_ASSERT(set.contains(interval) == all);
    RC_ASSERT(set.overlaps(interval) == any);
    RC_ASSERT(set.size() == model.size());
    std::set<std::uint64_t> listed;
    std::uint64_t end_before = 0;
    bool first = true;
    for (const Interval& range : set.ranges()) {
      RC_ASSERT(range.count > 0);
      RC_ASSERT(first || range.first > end_before);  // sorted, disjoint, not touching
      first = false;
      end_before = range.end();
      for (std::uint64_t p = range.first; p < range.end(); ++p) listed.insert(p);
    }
    RC_ASSERT(listed == model);
  }
}

}  // namespace
}  // namespace motley::modes

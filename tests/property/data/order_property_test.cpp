#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

#include "data/order.h"

namespace motley::data {
namespace {

std::vector<std::uint64_t> whole(const SampleOrder& order, std::uint64_t size) {
  std::vector<std::uint64_t> samples(size);
  order.fill(0, samples);
  return samples;
}

RC_GTEST_PROP(SampleOrderProperty, IsAPermutation, (std::uint64_t seed, std::uint64_t epoch)) {
  const auto size = *rc::gen::inRange<std::uint64_t>(1, 20000);
  std::vector<std::uint64_t> samples = whole(SampleOrder(seed, epoch, size), size);
  std::sort(samples.begin(), samples.end());
  for (std::uint64_t i = 0; i < size; ++i) RC_ASSERT(samples[i] == i);
}

RC_GTEST_PROP(SampleOrderProperty, FillsAnyRangeAsOneByOne, (std::uint64_t seed, std::uint64_t epoch)) {
  const auto size = *rc::gen::inRange<std::uint64_t>(1, 2000);
  const auto first = *rc::gen::inRange<std::uint64_t>(0, size + 1);
  const auto count = *rc::gen::inRange<std::uint64_t>(0, size - first + 1);
  const SampleOrder order(seed, epoch, size);
  std::vector<std::uint64_t> range(count);
  order.fill(first, range);
  for (std::uint64_t i = 0; i < count; ++i) RC_ASSERT(range[i] == order.at(first + i));
}

RC_GTEST_PROP(SampleOrderProperty, NeverRepeatsInLargeDataSets, (std::uint64_t seed, std::uint64_t epoch)) {
  // Beyond the bound of the table, where the order is computed in lanes.
  const auto size = *rc::gen::inRange<std::uint64_t>(std::uint64_t{1} << 28, SampleOrder::kSizeMax + 1);
  const auto first = *rc::gen::inRange<std::uint64_t>(0, size - 500);
  std::vector<std::uint64_t> range(500);
  const SampleOrder order(seed, epoch, size);
  order.fill(first, range);
  RC_ASSERT(range[7] == order.at(first + 7));
  std::sort(range.begin(), range.end());
  RC_ASSERT(range.back() < size);
  RC_ASSERT(std::adjacent_find(range.begin(), range.end()) == range.end());
}

}  // namespace
}  // namespace motley::data

#include "modes/rounds/round_stock.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "base/assert.h"

namespace motley::modes {
namespace {

/// How many of these positions are there from the first one on.
std::uint64_t first_of(const fleet::Stock& stock, const StepRange& part) noexcept {
  if (stock.has(part)) return part.count;
  if (part.epoch != stock.epoch || part.order_first < stock.first) return 0;
  const std::uint64_t before = part.order_first - stock.first;
  return std::min(part.count, stock.count - std::min(stock.count, before));
}

/// Likewise up to the last one.
std::uint64_t last_of(const fleet::Stock& stock, const StepRange& part) noexcept {
  if (stock.has(part)) return part.count;
  const std::uint64_t end = part.order_first + part.count;
  if (part.epoch != stock.epoch || end <= stock.first || end - stock.first > stock.count) return 0;
  return end - stock.first;
}

}  // namespace

Reach reach(const fleet::Stock& stock, std::span<const StepRange> parts) noexcept {
  Reach found;
  for (const StepRange& part : parts) found.total += part.count;
  for (const StepRange& part : parts) {
    const std::uint64_t some = first_of(stock, part);
    found.front += some;
    if (some < part.count) break;
  }
  for (std::size_t i = parts.size(); i-- > 0;) {
    const std::uint64_t some = last_of(stock, parts[i]);
    found.back += some;
    if (some < parts[i].count) break;
  }
  return found;
}

std::vector<std::size_t> placed(std::span<const Reach> reaches) {
  std::vector<std::size_t> order(reaches.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) {
    const Reach& each = reaches[i];
    if (each.whole()) return std::tuple<int, std::uint64_t, std::size_t>(1, 0, i);
    return each.at_front() ? std::tuple(0, each.front, i) : std::tuple(2, each.total - each.back, i);
  });
  return order;
}

void fit(std::span<std::uint64_t> counts, std::span<const Reach> reaches, std::uint64_t unit) noexcept {
  MOTLEY_ASSERT(counts.size() == reaches.size() && unit > 0);
  std::uint64_t end = 0, begin = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    end += counts[i];
    std::uint64_t boundary = end;
    if (reaches[i].at_front()) boundary = std::min(boundary, reaches[i].front / unit * unit);
    if (i + 1 < counts.size() && !reaches[i + 1].whole() && !reaches[i + 1].at_front()) {
      const std::uint64_t lacks = reaches[i + 1].total - reaches[i + 1].back;
      boundary = std::max(boundary, std::min(reaches[i + 1].total, (lacks + unit - 1) / unit * unit));
    }
    counts[i] = boundary - begin;
    begin = boundary;
  }
  MOTLEY_ASSERT(begin == end);
}

}  // namespace motley::modes

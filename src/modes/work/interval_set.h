#pragma once
// A set of positions as sorted, disjoint, non-touching ranges. Value type; no thread safety of its own.

#include <cstdint>
#include <span>
#include <vector>

namespace motley::modes {

struct Interval {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  bool operator==(const Interval&) const = default;
  [[nodiscard]] constexpr std::uint64_t end() const noexcept { return first + count; }
  [[nodiscard]] constexpr bool overlaps(const Interval& other) const noexcept {
    return first < other.end() && other.first < end();
  }
  [[nodiscard]] constexpr bool within(const Interval& other) const noexcept {
    return first >= other.first && end() <= other.end();
  }
};

class IntervalSet {
 public:
  IntervalSet() = default;
  /// All positions of `interval`.
  explicit IntervalSet(Interval interval) { insert(interval); }

  void insert(Interval interval);
  void erase(Interval interval);
  void clear() noexcept {
    ranges_.clear();
    size_ = 0;
  }

  /// Number of positions.
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return ranges_.empty(); }
  [[nodiscard]] bool contains(Interval interval) const noexcept;
  [[nodiscard]] bool overlaps(Interval interval) const noexcept;
  [[nodiscard]] std::span<const Interval> ranges() const noexcept { return ranges_; }
  bool operator==(const IntervalSet&) const = default;

 private:
  /// Index of the first range that ends after `position`.
  [[nodiscard]] std::size_t find(std::uint64_t position) const noexcept;

  std::vector<Interval> ranges_;
  std::uint64_t size_ = 0;
};

}  // namespace motley::modes

#pragma once
// A number that every step has, kept in a bounded room for as many steps as there are: what lies close together becomes
// one bucket, which keeps its first, least, greatest and last value, so that no peak is lost. A value; no threads.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace motley::report {

class Curve {
 public:
  static constexpr std::size_t kBucketsMax = 2048;
  struct Bucket {
    std::uint64_t first_step = 0, last_step = 0, count = 0;
    double first = 0, least = 0, greatest = 0, last = 0, sum = 0;
    [[nodiscard]] double mean() const noexcept { return sum / static_cast<double>(count); }
    bool operator==(const Bucket&) const = default;
  };

  void add(std::uint64_t step, double value);
  /// In order of steps; all but the newest hold as many values each.
  [[nodiscard]] const std::vector<Bucket>& buckets() const noexcept { return buckets_; }
  [[nodiscard]] bool empty() const noexcept { return buckets_.empty(); }
  bool operator==(const Curve&) const = default;

 private:
  std::vector<Bucket> buckets_;
  std::uint64_t per_bucket_ = 1;
};

}  // namespace motley::report

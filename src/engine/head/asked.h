#pragma once
// What a session was asked to compute, and when. A worker's word on how long something took is held against what the
// coordinator saw of it: longer than since the grant it was not. One thread at a time.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "base/time.h"

namespace motley::engine {

class Asked {
 public:
  static constexpr std::size_t kMost = 128;  // leases of a session that are remembered
  // A device that computes a sample in less is none.
  static constexpr double kSecondsPerSampleMin = 1e-9;

  struct Lease {
    std::uint64_t lease = 0, pass = 0;
    std::uint64_t count = 0;  // at the most
    Time at{};
    bool feedback = false;  // as its grant said
    bool told = false;      // how long it took

    /// The seconds it took, as claimed; empty where that is no time at all. `slack`: by so much what the worker says
    /// may exceed what was seen; no deadline is shorter, so that as little depends on it.
    [[nodiscard]] std::optional<double> took(std::uint64_t samples, double claimed, Time now, Duration slack) const {
      if (!std::isfinite(claimed) || claimed <= 0) return std::nullopt;
      const double least = kSecondsPerSampleMin * static_cast<double>(samples);
      return std::max(least, std::min(claimed, seconds(now - at + slack)));
    }
  };

  void add(const Lease& lease) {
    if (leases_.size() == kMost) leases_.pop_front();
    leases_.push_back(lease);
  }
  /// Null where it was never asked for, or long ago.
  [[nodiscard]] Lease* find(std::uint64_t lease) {
    const auto found = std::ranges::find(leases_, lease, &Lease::lease);
    return found == leases_.end() ? nullptr : &*found;
  }

 private:
  std::deque<Lease> leases_;  // in order of grants
};

}  // namespace motley::engine

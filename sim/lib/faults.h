#pragma once
// What a machine does wrong that computes and talks, but not as it should: broken memory, an old program, or ill will.
// It changes what the machine says; whether it is found is the coordinator's affair. One thread.

#include <cstdint>
#include <set>
#include <string_view>

#include "base/philox.h"
#include "wire/frame.h"

namespace motley::sim {

enum class Fault : std::uint8_t {
  none,
  not_finite,    // contributions with a NaN
  other_weight,  // declares three times the weight, and then sends nothing
  hands_back,    // leases come back without a sample computed
  odd_times,     // says that it took no time, less than none, or longer than the world is old
  silent,        // begins, and sends nothing
  stale,         // answers under the name of the lease before
  wild,          // from some lease on, chunks of gradients 1e20 times as large
  wrong,         // chunks of gradients of another sign and of usual size: counts until a second look finds it
  negated,       // the whole gradient with another sign, from some lease on
  outdated,      // that of twenty of its leases before, from some lease on
};
constexpr std::uint64_t kFaults = 8;  // beside none, of those that a seed may have
std::string_view to_word(Fault fault) noexcept;

/// What its frames become.
class FaultyMouth {
 public:
  /// `often`: part of the leases that the fault is in.
  FaultyMouth(Fault fault, double often, std::uint64_t seed, std::uint64_t stream)
      : fault_(fault), often_(often), random_(seed, stream) {}

  /// A new lease: whether its contribution gets a NaN, or is handed back at once.
  enum class Start : std::uint8_t { sound, not_finite, handed_back, wild, wrong, negated, outdated };
  Start start();
  /// Contributions that were made wrong here, without those that are to be made wild or wrong.
  [[nodiscard]] std::uint64_t lies() const noexcept { return lies_; }
  /// From now on its leases may be wrong.
  [[nodiscard]] bool lies_by_now() const noexcept { return leases_ > kLeasesBeforeLies; }
  /// False: it is not sent.
  bool changes(wire::Frame& frame);

 private:
  static constexpr std::uint64_t kLeasesBeforeLies = 20;

  bool renamed(wire::Frame& frame) const;
  bool strikes() { return fault_ != Fault::none && random_.uniform() < often_; }

  Fault fault_;
  double often_;
  Philox random_;
  std::uint64_t leases_ = 0, lies_ = 0;
  std::set<std::uint64_t> mute_;  // leases of which nothing more is sent
  std::uint64_t newest_ = 0;      // lease that was begun under its own name
  std::set<std::uint64_t> stale_;
};

}  // namespace motley::sim

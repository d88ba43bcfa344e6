#pragma once
// Shares that are computed twice, by two workers, before they count: one in so many, chosen at random (train.verify).
// Where both come to the same the second counts. Where they differ neither is believed until a third comes to what one
// of them did; the head's own device settles it at once. Who is shown to be wrong gets a strike when the pass is
// closed. The driver compares: it says of each chunk from which claims it differs. One thread at a time.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/philox.h"
#include "modes/work/pass_work.h"

namespace motley::modes {

class Verification {
 public:
  /// REQUIRES it outlives this.
  explicit Verification(PassWork& work)
      : work_(work), random_(work.run.config.verify.secret, work.run.config.first_version) {}

  /// A pass opens.
  void begin() { work_.claims.clear(); }
  /// Of the shares of a pass, in which each has a worker of its own, the one that is to be withheld. `first`: whose the
  /// first is, in case there is no other: then somebody parked looks.
  [[nodiscard]] std::optional<std::size_t> choose(std::span<const Interval> shares, const fleet::Member& first);
  /// What it declares differs from these claims, too, by bit.
  [[nodiscard]] std::uint32_t unlike(const Lease& lease) const noexcept;
  /// It differs from all that others came to for these positions.
  [[nodiscard]] bool rejects(const Lease& lease) const noexcept;
  /// It is whole, and does not count: somebody else computes these positions. REQUIRES withheld and begun.
  void claim(const Lease& lease);
  /// The pass is about to be closed; the workers whose claims what counts differs from, where two came to that or the
  /// head's own device.
  [[nodiscard]] std::vector<WorkerId> liars() const;

 private:
  /// All who may look draw the same random numbers of one seed.
  [[nodiscard]] bool alike() const noexcept;
  /// What a second computation takes who is quickest of those that are parked, in steps of `alone`; empty: nobody is.
  [[nodiscard]] std::optional<double> steps_of_parked(const fleet::Member& alone, std::uint64_t samples) const;
  [[nodiscard]] bool refuted(std::size_t claim) const noexcept;

  PassWork& work_;
  Philox random_;
  std::uint64_t passes_ = 0;
};

}  // namespace motley::modes

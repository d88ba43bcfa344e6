#pragma once
// Shares that are computed twice, by two workers, before they count: one in so many, chosen at random (train.verify),
// and those of workers that there is a reason to look at (looks.h, suspicion.h), from the first pass on where their
// device is watched (Member::Shown). Where both come to the same the second
// counts. Where they differ neither is believed until a third comes to what one of them did; the head's own device
// settles it at once. Who is shown to be wrong gets a strike when the pass is closed. The driver compares: it says of
// each chunk from which claims it differs, and which way it points. One thread at a time.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/philox.h"
#include "modes/exact/looks.h"
#include "modes/exact/suspicion.h"
#include "modes/work/pass_work.h"

namespace motley::modes {

class Verification {
 public:
  /// REQUIRES it outlives this.
  explicit Verification(PassWork& work)
      : work_(work),
        random_(work.run.config.verify.secret, work.run.config.first_version),
        looks_(work.run.config.verify.secret ^ kLooksKey, work.run.config.first_version) {}

  /// A pass opens.
  void begin() {
    work_.claims.clear();
    suspicion_.begin();
    pointed_ = false;
  }
  /// Of the shares of a pass, each of another worker, the one that is to be withheld. Where there is one alone,
  /// somebody parked looks.
  [[nodiscard]] std::optional<std::size_t> choose(std::span<const Interval> shares, std::span<fleet::Member* const> of);
  /// What it declares differs from these claims, too, by bit.
  [[nodiscard]] std::uint32_t unlike(const Lease& lease) const noexcept;
  /// It differs from all that others came to for these positions.
  [[nodiscard]] bool rejects(const Lease& lease) const noexcept;
  /// The chunk is about to be summed: the contribution that points so far from the others that somebody else is to come
  /// to the same first.
  [[nodiscard]] Lease* stray(ChunkId chunk);
  /// It is whole, and does not count: somebody else computes these positions. REQUIRES withheld.
  void claim(const Lease& lease);
  /// The train pass is about to be closed: what follows from it for who is looked at. Returns the workers whose claims
  /// what counts differs from, where two came to that or the head's own device.
  std::vector<WorkerId> close();

 private:
  static constexpr std::uint64_t kLooksKey = 0x4C6F6F6B73;           // other numbers than those of random_
  enum class Found : std::uint8_t { nothing, right, wrong, apart };  // apart: nobody knows which of two is wrong

  /// The train passes of this process in which speeds become known are over.
  [[nodiscard]] bool knows_speeds() const noexcept;
  /// What looking at this one takes, in steps.
  [[nodiscard]] double steps_of(std::span<const Interval> shares, std::size_t one) const noexcept;
  /// As choose(), where somebody is to be looked at for a reason.
  [[nodiscard]] std::optional<std::size_t> with_reason(std::span<const Interval> shares,
                                                       std::span<fleet::Member* const> of);
  /// Somebody could show that this worker is wrong.
  [[nodiscard]] bool may_settle(WorkerId about) const noexcept;
  /// Shares are looked at: where a model draws random numbers, while all who may look draw the same of one seed.
  [[nodiscard]] bool looks() const noexcept;
  /// What a second computation takes who is quickest of those that are parked, in steps of `alone`; empty: nobody is.
  [[nodiscard]] std::optional<double> steps_of_parked(const fleet::Member& alone, std::uint64_t samples) const;
  [[nodiscard]] Found found(std::size_t claim) const noexcept;

  PassWork& work_;
  Philox random_;
  Looks looks_;
  Suspicion suspicion_;
  std::uint64_t passes_ = 0;
  bool pointed_ = false;         // the open pass was looked at by direction
  std::vector<Pointing> parts_;  // kept for their memory
  std::vector<LeaseId> part_of_;
};

}  // namespace motley::modes

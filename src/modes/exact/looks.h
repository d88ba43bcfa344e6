#pragma once
// Who is looked at next besides whom chance chooses, and what that may cost. Second looks take train.verify of the time
// in the long run: one that has a reason may be made on credit, and chance chooses more rarely until that is paid back.
// Pure; one thread at a time.

#include <cstdint>
#include <optional>
#include <vector>

#include "base/philox.h"
#include "fleet/member.h"

namespace motley::modes {

using fleet::WorkerId;

class Looks {
 public:
  // The first of a worker; it points elsewhere, step by step; it was wrong before; it points elsewhere in this one
  // step.
  enum class Why : std::uint8_t { first, suspected, wrong, at_once };

  static constexpr std::uint64_t kFirstFrom = 20, kFirstWithin = 24;  // shares of a worker, until its first look
  static constexpr std::uint32_t kFollowing = 2;                      // right ones after a wrong one
  // In steps: what is owed at the most, by reason; of several that wait the last reason comes first.
  static constexpr double kOwedForFirst = 8, kOwedForSuspected = 10, kOwedForWrong = 14, kOwedAtOnce = 20;
  static constexpr double kSavedMost = 2;
  static constexpr double kOwedByChance = 1;  // from there on chance chooses half as often

  explicit Looks(std::uint64_t secret, std::uint64_t version) : random_(secret, version) {}

  /// A pass: so much of a step may go to second looks.
  void earn(double part) noexcept;
  void pay(double steps) noexcept { balance_ -= steps; }
  /// Of `part`: what chance may use now.
  [[nodiscard]] double by_chance(double part) const noexcept { return balance_ < -kOwedByChance ? part / 2 : part; }
  /// A look that takes so many steps.
  [[nodiscard]] bool affords(Why why, double steps) const noexcept;

  /// It has a share of a pass. `watched`: its first look is due with its first share.
  void has_share(WorkerId worker, bool watched);
  /// Why it is to be looked at now, if it is. `suspected`: its gradients point elsewhere.
  [[nodiscard]] std::optional<Why> due(WorkerId worker, bool suspected) const noexcept;
  /// What a look at it came to.
  void right(WorkerId worker);
  void wrong(WorkerId worker);

 private:
  struct Known {
    WorkerId worker = 0;
    std::uint64_t shares = 0, first_at = 0;
    bool looked_at = false;
    std::uint32_t following = 0;  // looks that it has to pass
  };
  Known& known(WorkerId worker);

  Philox random_;
  std::vector<Known> known_;
  double balance_ = 0;  // in steps
};

}  // namespace motley::modes

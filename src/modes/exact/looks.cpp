#include "modes/exact/looks.h"

#include <algorithm>
#include <array>

namespace motley::modes {

Looks::Known& Looks::known(WorkerId worker) {
  const auto found = std::ranges::find(known_, worker, &Known::worker);
  if (found != known_.end()) return *found;
  return known_.emplace_back(Known{.worker = worker, .first_at = kFirstFrom + random_.below(kFirstWithin)});
}

void Looks::earn(double part) noexcept { balance_ = std::min(kSavedMost, balance_ + part); }

bool Looks::affords(Why why, double steps) const noexcept {
  constexpr std::array<double, 4> kOwed{kOwedForFirst, kOwedForSuspected, kOwedForWrong, kOwedAtOnce};
  return balance_ - steps >= -kOwed[static_cast<std::size_t>(why)];
}

void Looks::has_share(WorkerId worker, bool watched) {
  Known& one = known(worker);
  ++one.shares;
  if (watched) one.first_at = 1;
}

std::optional<Looks::Why> Looks::due(WorkerId worker, bool suspected) const noexcept {
  const auto found = std::ranges::find(known_, worker, &Known::worker);
  if (found != known_.end() && found->following > 0) return Why::wrong;
  if (suspected) return Why::suspected;
  if (found != known_.end() && !found->looked_at && found->shares >= found->first_at) return Why::first;
  return {};
}

void Looks::right(WorkerId worker) {
  Known& one = known(worker);
  one.looked_at = true;
  one.following -= std::min(one.following, 1U);
}

void Looks::wrong(WorkerId worker) {
  Known& one = known(worker);
  one.looked_at = true;
  one.following = kFollowing;
}

}  // namespace motley::modes

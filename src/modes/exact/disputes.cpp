#include "modes/exact/disputes.h"

#include <algorithm>
#include <limits>

namespace motley::modes {
namespace {

constexpr WorkerId kSeveral = std::numeric_limits<WorkerId>::max();

}  // namespace

bool Disputes::note(const Claim& claim) {
  const bool known = std::ranges::any_of(claims_, [&](const Claim& each) {
    return each.worker == claim.worker && each.range == claim.range && same_weight(each.weight, claim.weight);
  });
  if (!known) claims_.push_back(claim);
  return !known;
}

bool Disputes::believes(const Lease& lease, const Contribution& said, Time now) {
  const Claim claim{said.range, lease.worker, work_.run.roster.is_local(lease.worker), said.weight};
  const std::vector<Contribution> rivals = work_.coverage.beside(said.range);
  bool against_local = false;
  for (const Contribution& rival : rivals) {
    const Lease* of = work_.leases.find(rival.lease);
    if (of == nullptr) continue;
    against_local |= work_.run.roster.is_local(of->worker);
    note({rival.range, of->worker, work_.run.roster.is_local(of->worker), rival.weight});
    work_.avoid.push_back({.range = rival.range, .worker = of->worker, .disputed = true});
  }
  for (const Contribution& rival : rivals) note_parts(rival, said, rivals);
  const bool agreed = std::ranges::any_of(claims_, [&](const Claim& other) {
    return other.worker != claim.worker && other.range == claim.range && same_weight(other.weight, claim.weight);
  });
  const bool repeated = !note(claim);  // nobody else is there to compute it
  work_.act(ActionKind::warn, {ReasonCode::wrong_weight, lease.worker, said.range.first, said.range.count});
  const bool believed = claim.local || (!against_local && (agreed || repeated));
  if (!believed) work_.avoid.push_back({.range = lease.range, .worker = lease.worker, .disputed = true});
  if (!against_local || claim.local)
    for (const Contribution& rival : rivals) give_up(rival, now);
  return believed;
}

// What others said of the parts of what was declared first, as one word.
void Disputes::note_parts(const Contribution& of, const Contribution& said, const std::vector<Contribution>& rivals) {
  if (said.range == of.range || !said.range.within(of.range)) return;
  IntervalSet tiled(said.range);
  double weight = said.weight;
  for (const Contribution& part : rivals) {
    if (part.lease == of.lease || !part.range.within(of.range) || tiled.overlaps(part.range)) continue;
    tiled.insert(part.range);
    weight += part.weight;
  }
  if (tiled.size() == of.range.count) note({.range = of.range, .weight = weight});
}

void Disputes::give_up(const Contribution& rival, Time now) {
  work_.coverage.withdraw(rival.lease);
  const Reason reason{.code = ReasonCode::wrong_weight, .worker = 0};
  Lease* lease = work_.leases.find(rival.lease);
  work_.reissue = Reason{.code = ReasonCode::lost_lease, .worker = lease == nullptr ? 0 : lease->worker};
  if (lease == nullptr || !lease->live()) {
    work_.act(ActionKind::abandon, reason).lease = rival.lease;
    return;
  }
  work_.act_on(*lease, ActionKind::taken, reason);
  ends_.report_late(*lease, now);
  ends_.end(*lease);
  host_.idle(lease->session);
}

// What counts for the positions of a claim, as one word, whoever computed its parts: others than those who said so
// before, because nobody gets again what is disputed of his.
void Disputes::add_counted(std::vector<Claim>& said, const Claim& about) const {
  Claim counted{.range = about.range};
  IntervalSet tiled;
  for (const Contribution& part : work_.coverage.beside(about.range)) {
    const Lease* lease = work_.leases.find(part.lease);
    if (part.accepted == 0 || lease == nullptr || !part.range.within(about.range) || tiled.overlaps(part.range))
      continue;
    if (lease->worker == about.worker) return;
    tiled.insert(part.range);
    counted.weight += part.weight;
    counted.worker = counted.worker == 0 || counted.worker == lease->worker ? lease->worker : kSeveral;
  }
  if (tiled.size() != about.range.count) return;
  counted.local = work_.run.roster.is_local(counted.worker);
  said.push_back(counted);
}

bool Disputes::refuted(const Claim& claim) const {
  std::vector<Claim> said;
  for (const Claim& other : claims_)
    if (other.range == claim.range) said.push_back(other);
  add_counted(said, claim);
  for (const Claim& one : said) {
    if (one.worker == claim.worker || same_weight(one.weight, claim.weight)) continue;
    if (one.local && !claim.local) return true;
    const bool second = std::ranges::any_of(said, [&](const Claim& other) {
      return other.worker != one.worker && other.worker != claim.worker && same_weight(other.weight, one.weight);
    });
    if (second && !claim.local) return true;
  }
  return false;
}

std::vector<WorkerId> Disputes::contradicted() const {
  std::vector<WorkerId> found;
  for (const Claim& claim : claims_) {
    const bool several = claim.worker == 0;  // one of them is wrong, and nobody knows which
    if (!several && refuted(claim) && std::ranges::find(found, claim.worker) == found.end())
      found.push_back(claim.worker);
  }
  return found;
}

}  // namespace motley::modes

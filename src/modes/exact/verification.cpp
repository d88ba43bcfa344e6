#include "modes/exact/verification.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/assert.h"

namespace motley::modes {
namespace {

constexpr double kLossTolerance = 0.1;  // as much as gradients may differ in

bool bit(std::uint32_t bits, std::size_t claim) noexcept { return (bits >> claim & 1U) != 0; }

}  // namespace

bool Verification::knows_speeds() const noexcept {
  return passes_ > std::min(work_.run.config.verify.after, Verify::kWithReasonAfter);
}

// The time that it takes the other with the largest share, in steps, is what a second look costs: rarer where that is
// long, so that all of them together cost no more than train.verify says.
double Verification::steps_of(std::span<const Interval> shares, std::size_t one) const noexcept {
  std::uint64_t largest = 1;
  for (std::size_t i = 0; i < shares.size(); ++i)
    if (i != one) largest = std::max(largest, shares[i].count);
  return static_cast<double>(shares[one].count) / static_cast<double>(largest);
}

std::optional<std::size_t> Verification::choose(std::span<const Interval> shares, std::span<fleet::Member* const> of) {
  const Verify& verify = work_.run.config.verify;
  if (!looks() || !work_.training() || shares.empty()) return {};
  ++passes_;
  looks_.earn(verify.part);
  for (std::size_t i = 0; i < shares.size(); ++i) looks_.has_share(of[i]->worker, of[i]->shown.watched);
  std::optional<std::size_t> chosen;
  double steps = 0;
  if (passes_ > verify.after && shares.size() > 1) {
    const std::size_t one = random_.below(shares.size());
    steps = steps_of(shares, one);
    if (random_.uniform() * steps < looks_.by_chance(verify.part)) chosen = one;
  } else if (passes_ > verify.after && !of[0]->local) {
    const std::optional<double> parked = steps_of_parked(*of[0], shares[0].count);
    steps = parked.value_or(0);
    if (parked && random_.uniform() * steps < looks_.by_chance(verify.part)) chosen = 0;
  }
  if (const auto other = chosen ? std::nullopt : with_reason(shares, of)) return other;
  if (chosen) looks_.pay(steps);
  return chosen;
}

std::optional<std::size_t> Verification::with_reason(std::span<const Interval> shares,
                                                     std::span<fleet::Member* const> of) {
  std::optional<std::size_t> chosen;
  Looks::Why most = Looks::Why::first;
  double costs = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const WorkerId worker = of[i]->worker;
    if (!knows_speeds() && !of[i]->shown.watched) continue;
    if (of[i]->local || !may_settle(worker)) continue;
    const auto why = looks_.due(worker, suspicion_.of(worker));
    if (!why || (chosen && *why <= most)) continue;
    const std::optional<double> steps =
        shares.size() > 1 ? steps_of(shares, i) : steps_of_parked(*of[i], shares[i].count);
    if (!steps || !looks_.affords(*why, *steps)) continue;
    chosen = i;
    most = *why;
    costs = *steps;
  }
  if (chosen) looks_.pay(costs);
  return chosen;
}

bool Verification::may_settle(WorkerId about) const noexcept {
  std::size_t others = 0;
  for (const fleet::Member& member : work_.run.roster.all()) {
    const bool there = member.state == fleet::MemberState::member || member.state == fleet::MemberState::parked;
    if (!there || member.shown.unproven || member.worker == about) continue;
    if (member.local) return true;
    ++others;
  }
  return others > 1;
}

bool Verification::looks() const noexcept {
  const Verify& verify = work_.run.config.verify;
  if (verify.part <= 0 || !verify.alike) return verify.part > 0;
  std::optional<std::uint64_t> first;
  for (const fleet::Member& member : work_.run.roster.all()) {
    const bool may = member.state == fleet::MemberState::member || member.state == fleet::MemberState::parked;
    if (may && (member.shown.numbers == 0 || member.shown.numbers != first.value_or(member.shown.numbers)))
      return false;
    if (may) first = member.shown.numbers;
  }
  return true;
}

std::optional<double> Verification::steps_of_parked(const fleet::Member& alone, std::uint64_t samples) const {
  const auto time_of = [&](WorkerId worker) {
    return static_cast<double>(work_.run.performance.allowance(PassKind::train, worker, samples).count());
  };
  std::optional<double> quickest;
  for (const fleet::Member& member : work_.run.roster.all())
    if (member.state == fleet::MemberState::parked && !member.shown.unproven)
      quickest = std::min(quickest.value_or(std::numeric_limits<double>::infinity()), time_of(member.worker));
  if (!quickest) return {};
  return 1 + *quickest / std::max(1.0, time_of(alone.worker));
}

std::uint32_t Verification::unlike(const Lease& lease) const noexcept {
  std::uint32_t found = 0;
  for (std::size_t i = 0; i < work_.claims.size(); ++i) {
    const PassWork::Claim& claim = work_.claims[i];
    if (claim.range != lease.range) continue;
    const double far = kLossTolerance * std::max(std::abs(claim.loss_sum), std::abs(lease.loss_sum));
    if (!same_weight(claim.weight, lease.weight) || !(std::abs(claim.loss_sum - lease.loss_sum) <= far))
      found |= 1U << i;
  }
  return found;
}

bool Verification::rejects(const Lease& lease) const noexcept {
  if (work_.claims.empty() || work_.run.roster.is_local(lease.worker)) return false;
  bool differs = false;
  for (std::size_t i = 0; i < work_.claims.size(); ++i) {
    if (work_.claims[i].range != lease.range) continue;
    // One that says it again was asked again, because nobody else is there.
    if (work_.claims[i].worker == lease.worker || !bit(lease.doubt.unlike, i)) return false;
    differs = true;
  }
  return differs && work_.claims.size() < PassWork::kClaimsMax;
}

Lease* Verification::stray(ChunkId chunk) {
  if (!looks() || pointed_ || !work_.training() || !work_.coverage.ready(chunk)) return nullptr;
  parts_.clear();
  part_of_.clear();
  for (const Coverage::Piece& piece : work_.coverage.pieces(chunk)) {
    const Lease* lease = work_.leases.find(piece.lease);
    if (lease == nullptr) continue;
    if (!lease->doubt.bearing) return nullptr;
    parts_.push_back({lease->worker, lease->weight, &*lease->doubt.bearing, work_.run.roster.is_local(lease->worker)});
    part_of_.push_back(lease->id);
  }
  pointed_ = true;
  const std::optional<std::size_t> far = suspicion_.step(parts_);
  if (!far || !knows_speeds() || !work_.claims.empty() || !may_settle(parts_[*far].worker)) return nullptr;
  Lease& lease = *work_.leases.find(part_of_[*far]);
  std::uint64_t largest = 1;
  for (const LeaseId other : part_of_)
    if (other != lease.id) largest = std::max(largest, work_.leases.find(other)->range.count);
  const double steps = static_cast<double>(lease.range.count) / static_cast<double>(largest);
  if (lease.lossy || lease.doubt.compared || !looks_.affords(Looks::Why::at_once, steps)) return nullptr;
  looks_.pay(steps);
  return &lease;
}

void Verification::claim(const Lease& lease) {
  MOTLEY_ASSERT(lease.doubt.withheld);
  if (std::ranges::any_of(work_.claims, [&](const PassWork::Claim& each) { return each.range == lease.range; }))
    work_.act(ActionKind::warn, {ReasonCode::differs, lease.worker, lease.range.first, lease.range.count});
  if (work_.claims.size() < PassWork::kClaimsMax)
    work_.claims.push_back({lease.range, lease.id, lease.worker, lease.weight, lease.loss_sum});
  work_.avoid.push_back({.range = lease.range, .worker = lease.worker, .withheld = true});
}

Verification::Found Verification::found(std::size_t claim) const noexcept {
  const PassWork::Claim& said = work_.claims[claim];
  Found found = Found::nothing;
  for (const Lease& lease : work_.leases.all()) {
    const Contribution* counted = work_.coverage.find(lease.id);
    if (counted == nullptr || counted->accepted == 0 || lease.doubt.withheld || lease.range != said.range) continue;
    if (lease.worker == said.worker) continue;
    if (!bit(lease.doubt.unlike, claim)) return Found::right;
    found = Found::apart;
    if (work_.run.roster.is_local(lease.worker)) return Found::wrong;
    for (std::size_t i = 0; i < work_.claims.size(); ++i) {
      const PassWork::Claim& other = work_.claims[i];
      if (other.range == said.range && other.worker != lease.worker && !bit(lease.doubt.unlike, i)) return Found::wrong;
    }
  }
  return found;
}

std::vector<WorkerId> Verification::close() {
  std::vector<WorkerId> contradicted;
  if (!looks()) return contradicted;  // who came meanwhile draws others, and may have computed a second time
  for (std::size_t i = 0; i < work_.claims.size(); ++i) {
    const WorkerId worker = work_.claims[i].worker;
    if (work_.run.roster.is_local(worker)) continue;
    const Found what = found(i);
    if (what == Found::right) {
      looks_.right(worker);
      suspicion_.cleared(worker);
      work_.run.roster.confirm(worker);
    } else if (what != Found::nothing) {
      looks_.wrong(worker);
      if (what == Found::wrong && std::ranges::find(contradicted, worker) == contradicted.end())
        contradicted.push_back(worker);
    }
  }
  return contradicted;
}

}  // namespace motley::modes

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

// The time that it takes the other with the largest share, in steps, is what a second look costs: rarer where that is
// long, so that all of them together cost no more than train.verify says.
std::optional<std::size_t> Verification::choose(std::span<const Interval> shares, const fleet::Member& first) {
  const Verify& verify = work_.run.config.verify;
  if (verify.part <= 0 || !work_.training() || ++passes_ <= verify.after || (verify.alike && !alike())) return {};
  if (shares.size() == 1) {
    const std::optional<double> steps = first.local ? std::nullopt : steps_of_parked(first, shares[0].count);
    return steps && random_.uniform() * *steps < verify.part ? std::optional<std::size_t>(0) : std::nullopt;
  }
  const std::size_t chosen = random_.below(shares.size());
  std::uint64_t largest = 1;
  for (std::size_t i = 0; i < shares.size(); ++i)
    if (i != chosen) largest = std::max(largest, shares[i].count);
  const double steps = static_cast<double>(shares[chosen].count) / static_cast<double>(largest);
  return random_.uniform() * steps < verify.part ? std::optional(chosen) : std::nullopt;
}

bool Verification::alike() const noexcept {
  std::optional<std::uint64_t> first;
  for (const fleet::Member& member : work_.run.roster.all()) {
    const bool may = member.state == fleet::MemberState::member || member.state == fleet::MemberState::parked;
    if (may && (member.numbers == 0 || member.numbers != first.value_or(member.numbers))) return false;
    if (may) first = member.numbers;
  }
  return true;
}

std::optional<double> Verification::steps_of_parked(const fleet::Member& alone, std::uint64_t samples) const {
  const auto time_of = [&](WorkerId worker) {
    return static_cast<double>(work_.run.pace.allowance(PassKind::train, worker, samples).count());
  };
  std::optional<double> quickest;
  for (const fleet::Member& member : work_.run.roster.all())
    if (member.state == fleet::MemberState::parked && !member.unproven)
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
    if (work_.claims[i].worker == lease.worker || !bit(lease.unlike, i)) return false;
    differs = true;
  }
  return differs && work_.claims.size() < PassWork::kClaimsMax;
}

void Verification::claim(const Lease& lease) {
  MOTLEY_ASSERT(lease.withheld && lease.state == LeaseState::begun);
  if (std::ranges::any_of(work_.claims, [&](const PassWork::Claim& each) { return each.range == lease.range; }))
    work_.act(ActionKind::warn, {ReasonCode::differs, lease.worker, lease.range.first, lease.range.count});
  if (work_.claims.size() < PassWork::kClaimsMax)
    work_.claims.push_back({lease.range, lease.id, lease.worker, lease.weight, lease.loss_sum});
  work_.avoid.push_back({.range = lease.range, .worker = lease.worker, .withheld = true});
}

bool Verification::refuted(std::size_t claim) const noexcept {
  const PassWork::Claim& said = work_.claims[claim];
  for (const Lease& lease : work_.leases.all()) {
    const Contribution* counted = work_.coverage.find(lease.id);
    if (counted == nullptr || counted->accepted == 0 || lease.withheld || lease.range != said.range) continue;
    if (lease.worker == said.worker || !bit(lease.unlike, claim)) continue;
    if (work_.run.roster.is_local(lease.worker)) return true;
    for (std::size_t i = 0; i < work_.claims.size(); ++i) {
      const PassWork::Claim& other = work_.claims[i];
      if (other.range == said.range && other.worker != lease.worker && !bit(lease.unlike, i)) return true;
    }
  }
  return false;
}

std::vector<WorkerId> Verification::liars() const {
  std::vector<WorkerId> found;
  for (std::size_t i = 0; i < work_.claims.size(); ++i) {
    const WorkerId worker = work_.claims[i].worker;
    if (!work_.run.roster.is_local(worker) && refuted(i) && std::ranges::find(found, worker) == found.end())
      found.push_back(worker);
  }
  return found;
}

}  // namespace motley::modes

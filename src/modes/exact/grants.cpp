#include "modes/exact/grants.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "base/assert.h"
#include "modes/doubtful.h"

namespace motley::modes {
namespace {

// In fewer micro-batches there is no time to see who is behind, and to do something about it.
constexpr std::uint64_t kUnitsMin = 4;

}  // namespace

void Grants::share_out(Time now) {
  members_.clear();
  workers_.clear();
  for (Member& member : run_.roster.all()) {
    if (!member.streams) continue;
    work_.act(ActionKind::open_pass).session = member.session;
    if (member.state == MemberState::member) members_.push_back(&member);
  }
  leave_out_doubtful(members_, run_, now);
  std::sort(members_.begin(), members_.end(), [](const Member* a, const Member* b) { return a->worker < b->worker; });
  for (const Member* member : members_) workers_.push_back(member->worker);
  counts_.assign(workers_.size(), 0);
  run_.performance.split(work_.pass->id.kind, work_.pass->range.count, workers_, false, counts_);
  if (work_.training())
    for (std::size_t i = 0; i < members_.size(); ++i) {
      members_[i]->share.samples = counts_[i];
      members_[i]->share.left_out = counts_[i] == 0 ? members_[i]->share.left_out + 1 : 0;
    }
  grant_shares(now);
}

// Two neighbours compute towards each other, and the boundary between them may move. Whoever has no partner, or too
// little to do, has a lease that stays as it is.
void Grants::grant_shares(Time now) {
  std::uint64_t first = 0;
  std::size_t used = 0;
  ranges_.clear();
  for (std::size_t i = 0; i < members_.size(); ++i) {
    MOTLEY_ASSERT(counts_[i] <= work_.pass->range.count - first);
    if (counts_[i] == 0) continue;
    ranges_.push_back({first, counts_[i]});
    first += counts_[i];
    members_[used++] = members_[i];
  }
  MOTLEY_ASSERT(first == work_.pass->range.count);
  const std::optional<std::size_t> withheld = verification_.choose(ranges_, std::span(members_).first(used));
  const auto share = [&](std::size_t i, Interval ceiling) {
    const Reason reason{ReasonCode::share, members_[i]->worker, ranges_[i].count, work_.pass->range.count};
    return grant(*members_[i], ranges_[i], ceiling, true, reason, now, withheld == i);
  };
  for (std::size_t i = 0; i < used;) {
    const Interval zone = work_.training() && i + 1 < used ? meeting_zone(i, i + 1) : Interval{};
    if (zone.count == 0) {
      share(i, ranges_[i]);
      ++i;
      continue;
    }
    const LeaseId low = share(i, {ranges_[i].first, zone.end() - ranges_[i].first});
    const LeaseId high = share(i + 1, {zone.first, ranges_[i + 1].end() - zone.first});
    work_.leases.find(low)->boundary.partner = high;
    work_.leases.find(high)->boundary.partner = low;
    i += 2;
  }
}

Interval Grants::meeting_zone(std::size_t low, std::size_t high) const {
  const std::uint64_t low_unit = run_.performance.unit(members_[low]->worker);
  const std::uint64_t high_unit = run_.performance.unit(members_[high]->worker);
  const auto too_few = [](std::uint64_t count, std::uint64_t unit) { return unit == 0 || count / unit < kUnitsMin; };
  if (too_few(ranges_[low].count, low_unit) || too_few(ranges_[high].count, high_unit)) return {};
  const std::uint64_t first = ranges_[low].first + low_unit;
  const std::uint64_t last = (ranges_[high].end() - high_unit) / run_.config.grain * run_.config.grain;
  return {first, last - first};
}

std::vector<const Member*> Grants::able(Time now) const {
  std::vector<const Member*> able;
  for (const Member& member : run_.roster.all())
    if (member.state == MemberState::member && !work_.leases.has_overdue(member.session)) able.push_back(&member);
  leave_out_doubtful(able, run_, now);
  return able;
}

void Grants::reissue(Time now) {
  std::vector<const Member*> to = able(now);
  if (to.empty() && run_.roster.count(MemberState::parked) > 0) {
    host_.take_in_parked();
    to = able(now);
  }
  if (to.empty()) return;  // asked again after every event until somebody is there
  const Reason reason = *work_.reissue;
  work_.reissue.reset();
  std::vector<Interval> promised;
  for (const Lease& lease : work_.leases.all())
    if (lease.live() && !lease.due.passed) promised.push_back(lease.range);
  const std::vector<Interval> parts = work_.apart(work_.coverage.tiles(work_.coverage.missing(promised)));
  if (parts.empty()) return;
  const auto nobody_else = [&](const Interval& part) {
    return (work_.compared(part) || work_.doubted(part)) &&
           std::ranges::all_of(to, [&](const Member* member) { return work_.avoids(member->worker, part); });
  };
  if (run_.roster.count(MemberState::parked) > 0 && std::ranges::any_of(parts, nobody_else)) {
    host_.take_in_parked();
    to = able(now);
  }
  std::sort(to.begin(), to.end(), [](const Member* a, const Member* b) { return a->worker < b->worker; });
  std::vector<Interval> free;
  for (const Interval& part : parts) {
    std::vector<const Member*> others = to;
    std::erase_if(others, [&](const Member* member) { return work_.avoids(member->worker, part); });
    if (work_.compared(part)) {
      // Nobody is left who did not say something: rather who came to something that others come near, too.
      if (others.empty())
        std::ranges::copy_if(to, std::back_inserter(others),
                             [&](const Member* member) { return !work_.doubted(part, member->worker); });
      grant_compared(part, others.empty() ? to : others, reason, now);
      continue;
    }
    // One says it all, so that words can be compared; that of the head's own device settles it.
    const auto local = std::ranges::find_if(others, &Member::local);
    if (local != others.end() && work_.contested(part)) {
      others = {*local};
    } else if (work_.disputed(part)) {
      others = {others.empty() ? to.front() : others.front()};
    }
    if (others.empty() || (others.size() == to.size() && !work_.disputed(part))) {
      free.push_back(part);
    } else {
      grant_parts({&part, 1}, others, reason, now);
    }
  }
  if (!free.empty()) grant_parts(free, to, reason, now);
}

// The head's own device, whose word counts at once; else who has the largest share.
void Grants::grant_compared(Interval part, std::span<const Member* const> to, Reason reason, Time now) {
  const auto local = std::ranges::find_if(to, &Member::local);
  const Member& who =
      **(local != to.end() ? local
                           : std::ranges::max_element(to, {}, [](const Member* each) { return each->share.samples; }));
  work_.leases.find(grant(who, part, part, false, reason, now))->doubt.compared = true;
}

void Grants::grant_parts(std::span<const Interval> parts, std::span<const Member* const> to, Reason reason, Time now) {
  std::uint64_t total = 0;
  for (const Interval& part : parts) total += part.count;
  workers_.clear();
  for (const Member* member : to) workers_.push_back(member->worker);
  counts_.assign(to.size(), 0);
  run_.performance.split(work_.pass->id.kind, total, workers_, true, counts_);
  std::size_t who = 0;
  std::uint64_t left = counts_[0];
  for (const Interval& part : parts) {
    std::uint64_t first = part.first;
    while (first < part.end()) {
      while (left == 0 && who + 1 < to.size()) left = counts_[++who];
      const std::uint64_t rest = part.end() - first;
      std::uint64_t count = who + 1 == to.size() ? rest : std::min(left, rest);
      // Ranges start on the grain; whoever is asked for a fraction of it takes all of it.
      const std::uint64_t grain = run_.config.grain;
      const std::uint64_t end = (first + count + grain - 1) / grain * grain;
      count = std::min(end - first, rest);
      grant(*to[who], {first, count}, {first, count}, false, reason, now);
      left -= std::min(left, count);
      first += count;
    }
  }
}

LeaseId Grants::grant(const Member& to, Interval range, Interval ceiling, bool first_of_pass, Reason reason, Time now,
                      bool withheld) {
  MOTLEY_ASSERT(to.state == MemberState::member && work_.pass && range.end() <= work_.pass->range.count);
  const std::uint64_t outstanding = work_.leases.outstanding(to.session) + range.count;
  Lease& lease = work_.leases.add(run_.next_lease(), to.session, to.worker, range, work_.coverage.chunks());
  lease.boundary.ceiling = ceiling;
  lease.from_end = ceiling.first < range.first;
  lease.first_of_pass = first_of_pass;
  lease.doubt.withheld = withheld;
  lease.granted = now;
  lease.due.deadline = now + run_.performance.allowance(work_.pass->id.kind, to.worker, outstanding);
  if (run_.performance.guesses(work_.pass->id.kind, to.worker)) {
    // What comes of all may share one link, and takes as long as there are of them.
    lease.due.patience = lease.due.deadline - now;
    lease.due.latest = now + static_cast<Duration::rep>(run_.roster.count(MemberState::member)) * lease.due.patience;
  }
  lease.due.unheard_deadline = now + run_.performance.unheard_allowance(work_.pass->id.kind, to.worker, outstanding);
  Action& action = work_.act_on(lease, ActionKind::grant, reason);
  action.range = range;
  action.ceiling = ceiling;
  return lease.id;
}

}  // namespace motley::modes

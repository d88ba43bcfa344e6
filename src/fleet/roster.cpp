#include "fleet/roster.h"

#include <algorithm>

#include "base/assert.h"

namespace motley::fleet {

Member& Roster::open(SessionId session, bool local, Time now) {
  MOTLEY_ASSERT(find(session) == nullptr);
  members_.push_back({.session = session, .local = local, .opened = now, .heard = now, .heartbeat_sent = now});
  return members_.back();
}

void Roster::close(SessionId session) {
  std::erase_if(members_, [&](const Member& member) { return member.session == session; });
}

Member* Roster::find(SessionId session) noexcept {
  for (Member& member : members_)
    if (member.session == session) return &member;
  return nullptr;
}

const Member* Roster::find(SessionId session) const noexcept {
  for (const Member& member : members_)
    if (member.session == session) return &member;
  return nullptr;
}

bool Roster::is_local(WorkerId worker) const noexcept {
  return std::ranges::any_of(members_, [&](const Member& member) { return member.worker == worker && member.local; });
}

const Member* Roster::idle(Time now) const noexcept {
  const auto found = std::ranges::find_if(members_, [now](const Member& member) { return member.idle(now); });
  return found == members_.end() ? nullptr : &*found;
}

std::size_t Roster::count(MemberState state) const noexcept {
  return static_cast<std::size_t>(
      std::count_if(members_.begin(), members_.end(), [&](const Member& member) { return member.state == state; }));
}

std::size_t Roster::admitted() const noexcept {
  return static_cast<std::size_t>(
      std::count_if(members_.begin(), members_.end(), [](const Member& member) { return member.admitted(); }));
}

void Roster::shift(Duration gap, Time now) noexcept {
  for (Member& member : members_) {
    member.opened = std::min(member.opened + gap, now);
    member.heard = std::min(member.heard + gap, now);
    member.heartbeat_sent = std::min(member.heartbeat_sent + gap, now);
  }
}

WorkerRecord& Roster::record(WorkerId worker) {
  MOTLEY_ASSERT(worker != 0);
  const auto known = std::find_if(records_.begin(), records_.end(),
                                  [&](const WorkerRecord& record) { return record.worker == worker; });
  if (known != records_.end()) return *known;
  return records_.emplace_back(WorkerRecord{.worker = worker});
}

void Roster::forgive(WorkerRecord& known, std::uint64_t version) noexcept {
  MOTLEY_ASSERT(version >= known.struck_at);
  const std::uint64_t forgiven = (version - known.struck_at) / kStrikeDecaySteps;
  known.strikes = forgiven >= known.strikes ? 0 : known.strikes - static_cast<std::uint32_t>(forgiven);
  known.struck_at += forgiven * kStrikeDecaySteps;
}

bool Roster::judge(WorkerRecord& known) noexcept {
  known.excluded = known.excluded || known.all_strikes() >= kStrikesMax;
  return known.excluded;
}

bool Roster::strike(WorkerId worker, std::uint64_t version) {
  WorkerRecord& known = record(worker);
  forgive(known, version);
  ++known.strikes;
  known.struck_at = version;
  return judge(known);
}

bool Roster::refute(WorkerId worker, std::uint64_t version) {
  WorkerRecord& known = record(worker);
  forgive(known, version);
  ++known.refuted;
  known.right = 0;
  return judge(known);
}

void Roster::confirm(WorkerId worker) {
  WorkerRecord& known = record(worker);
  if (known.refuted == 0 || ++known.right < kRightToForgive) return;
  --known.refuted;
  known.right = 0;
}

}  // namespace motley::fleet

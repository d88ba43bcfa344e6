#include "cluster/probes.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace motley::cluster {

using fleet::Member, fleet::MemberState, fleet::SessionId, fleet::WorkerId;
using modes::Action, modes::ActionKind;

namespace {

// The head's own device, too, may take its time to answer; a run never waits longer for what a comparison says.
constexpr std::uint32_t kTriesMax = 3;  // where the loss got other values between two probes
constexpr Duration kPatience = std::chrono::seconds(60);

/// It has the model and may compute.
bool able(const Member& member) noexcept {
  return member.state == MemberState::calibrating || member.state == MemberState::member ||
         member.state == MemberState::parked;
}

}  // namespace

// A device of the head that comes later is what all others are compared with that came before it.
void Probes::synced(const Member& member, Time now) {
  if (!rooms_.run.config.verify.probes) return;
  const Member* reference = nullptr;
  for (const Member& other : rooms_.run.roster.all()) {
    if (other.session == member.session || !able(other)) continue;
    if (member.local && !other.local) pair(other, member, now);
    if (reference == nullptr || (other.local && !reference->local)) reference = &other;
  }
  if (reference != nullptr && (reference->local || !member.local)) pair(member, *reference, now);
}

void Probes::pair(const Member& member, const Member& reference, Time now) {
  if (std::ranges::find(compared_, member.worker) != compared_.end()) return;
  if (std::ranges::find(pairs_, member.worker, &Pair::worker) == pairs_.end())
    pairs_.push_back({.worker = member.worker, .reference = reference.worker, .due = now + kPatience});
  if (!member.local) rooms_.run.roster.find(member.session)->shown.unproven = true;
  ask(reference);
  ask(member);
  compare();
}

void Probes::ask(const Member& member) {
  if (said(member.worker) != nullptr) return;
  if (std::ranges::find(asked_, member.worker, &Asked::worker) != asked_.end()) return;
  send(asked_.emplace_back(Asked{.session = member.session, .worker = member.worker}));
}

void Probes::send(Asked& asked) {
  const Member* member = rooms_.run.roster.find(asked.session);
  if (rooms_.pause.paused() && member->local) return;  // what the body looks at is what it computes with
  asked.lease = rooms_.run.next_lease();
  Action& action = rooms_.run.act(ActionKind::probe);
  action.session = asked.session;
  action.worker = asked.worker;
  action.lease = asked.lease;
  action.pass = {.kind = PassKind::probe};
}

const Probes::Said* Probes::said(WorkerId worker) const noexcept {
  const auto found = std::ranges::find(said_, worker, &Said::worker);
  return found == said_.end() ? nullptr : &*found;
}

Member* Probes::member_of(WorkerId worker) noexcept {
  const auto found = std::ranges::find(rooms_.run.roster.all(), worker, &Member::worker);
  return found == rooms_.run.roster.all().end() ? nullptr : &*found;
}

void Probes::trust(WorkerId worker) {
  if (Member* member = member_of(worker)) member->shown.unproven = false;
}

void Probes::on(const modes::Probed& event) {
  const auto asked = std::ranges::find(asked_, event.lease, &Asked::lease);
  if (event.lease == 0 || asked == asked_.end() || asked->session != event.session) return;
  said_.push_back({.worker = asked->worker, .whole = event.whole});
  asked_.erase(asked);
  compare();
}

void Probes::compare() {
  std::erase_if(pairs_, [this](Pair& pair) {
    const Said *one = said(pair.worker), *other = said(pair.reference);
    if (pair.comparing || one == nullptr || other == nullptr) return false;
    if (!one->whole || !other->whole) {
      trust(pair.worker);
      return true;
    }
    pair.comparing = true;
    Action& action = rooms_.run.act(ActionKind::compare_probes);
    action.worker = pair.worker;
    action.number = pair.reference;
    return false;
  });
}

std::optional<SessionId> Probes::on(const modes::ProbesCompared& event) {
  const auto pair = std::ranges::find(pairs_, event.worker, &Pair::worker);
  if (pair == pairs_.end() || !pair->comparing) return {};
  if (event.verdict == modes::ProbeVerdict::of_other_states && ++pair->tries < kTriesMax) {
    pair->comparing = false;
    for (const WorkerId worker : {pair->reference, pair->worker}) {
      std::erase_if(said_, [&](const Said& said) { return said.worker == worker; });
      if (const Member* member = member_of(worker)) ask(*member);
    }
    return {};
  }
  pairs_.erase(pair);
  compared_.push_back(event.worker);
  trust(event.worker);
  Member* member = member_of(event.worker);
  if (event.verdict != modes::ProbeVerdict::otherwise || member == nullptr || member->local ||
      !rooms_.run.roster.is_local(event.reference))
    return {};
  rooms_.run.roster.record(event.worker).excluded = true;
  member->state.enter(MemberState::excluded);
  return member->session;
}

void Probes::session_lost(SessionId session) {
  const auto asked = std::ranges::find(asked_, session, &Asked::session);
  if (asked == asked_.end()) return;
  const WorkerId worker = asked->worker;
  asked_.erase(asked);
  std::erase_if(pairs_, [&](const Pair& pair) {
    if (pair.worker != worker && pair.reference != worker) return false;
    trust(pair.worker);
    return true;
  });
}

void Probes::resumed() {
  for (Asked& asked : asked_)
    if (asked.lease == 0) send(asked);
}

void Probes::watch(Time now) {
  for (const Pair& pair : pairs_)
    if (now >= pair.due) trust(pair.worker);
}

}  // namespace motley::cluster

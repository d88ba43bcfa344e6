#include "engine/coordinator_chain.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace motley::engine {

namespace {

std::vector<plan::Way> ways(const CoordinatorOptions& options) {
  if (options.chain != CoordinatorOptions::Chain::measured) return {plan::Way::star};
  return {plan::Way::star, plan::Way::weights, plan::Way::both};
}

}  // namespace

Chain::Chain(const CoordinatorOptions& options, MeasuredPace& pace, WeightsSender& weights, Sessions& sessions,
             const fleet::Roster& members, CoordinatorOutput& output)
    : wanted_(options.chain),
      trial_(ways(options)),
      pace_(pace),
      weights_(weights),
      sessions_(sessions),
      members_(members),
      output_(output) {}

plan::Way Chain::way() const noexcept {
  switch (wanted_) {
    case CoordinatorOptions::Chain::none:
      return plan::Way::star;
    case CoordinatorOptions::Chain::weights:
      return plan::Way::weights;
    case CoordinatorOptions::Chain::measured:
      return trial_.way();
    case CoordinatorOptions::Chain::both:
      return plan::Way::both;
  }
  return plan::Way::star;
}

std::optional<ChainChoice> Chain::told() const {
  if (wanted_ != CoordinatorOptions::Chain::measured) return std::nullopt;
  if (parts_.size() < 2) return ChainChoice{.why = "no two machines beside the head take part"};
  return ChainChoice{.way = trial_.way(), .trying = trial_.trying(), .why = trial_.why()};
}

bool Chain::takes_part(const fleet::Member& member) const {
  if (member.state != fleet::MemberState::member || !member.streams) return false;
  const Session& session = sessions_.at(member.session);
  return session.remote() && !session.gone && session.holds == weights_.version() &&
         std::ranges::find(session.hello.features, kChain) != session.hello.features.end();
}

Session* Chain::follower_of(SessionId source) {
  for (const fleet::Member& member : members_.all())
    if (Session& session = sessions_.at(member.session); session.follows && session.follows->source == source)
      return &session;
  return nullptr;
}

bool Chain::barred(const Session& follower, const Session& source) const {
  const auto bar = follower.bars.find(source.worker);
  return bar != follower.bars.end() && weights_.version() < bar->second.until;
}

plan::Way Chain::went(const StepClosed& step, std::span<Session* const> parts) const {
  if (step.merged && step.merged->workers > 1) return plan::Way::both;
  const auto follow =
      std::ranges::count_if(parts, [](const Session* each) { return each->follows && each->follows->live; });
  return static_cast<std::size_t>(follow) + 1 < parts.size() ? plan::Way::star : plan::Way::weights;
}

void Chain::compare_ways(const StepClosed& step, std::span<Session* const> parts) {
  std::vector<SessionId> ids;
  ids.reserve(parts.size());
  for (const Session* each : parts) ids.push_back(each->id);
  std::ranges::sort(ids);
  const bool others = !parts_.empty() && ids != parts_;
  parts_ = std::move(ids);
  if (parts.size() < 2) {
    pace_.way().compared(false, false);
    return pace_.way().known();
  }
  const plan::Way before = way(), gone = went(step, parts);
  if (others) trial_.others();
  const bool quiet = !std::exchange(disturbed_, false) && step.verified == 0 && step.samples == step.global_batch;
  const bool counts = quiet && (pace_.settled() || trial_.against_best());
  trial_.closed(gone, seconds(step.duration) / static_cast<double>(std::max<std::uint64_t>(1, step.samples)), counts);
  pace_.way().compared(trial_.trying(), trial_.against_best());
  if (way() != before) return pace_.begin_way();
  if (gone == before) pace_.way().known();
}

double Chain::carries(const Session& session) const {
  return pace_.receives(session.worker).value_or(std::numeric_limits<double>::infinity());
}

bool Chain::clearly_faster(const Session& one, const Session& other) const {
  return carries(one) > kClearlyFaster * carries(other);
}

// Who is in no chain comes in front of the first that is clearly slower, where the one before that is not.
void Chain::make_room(std::span<Session* const> parts) {
  for (const Session* alone : parts) {
    if (alone->follows || follower_of(alone->id) != nullptr) continue;
    for (Session* slower : parts) {
      if (!slower->follows || !clearly_faster(*alone, *slower) || barred(*slower, *alone)) continue;
      const Session& before = sessions_.at(slower->follows->source);
      if (clearly_faster(*alone, before) || barred(*alone, before)) continue;
      for (Session* each = slower; each != nullptr; each = follower_of(each->id)) part(*each);  // their hops are others
      break;
    }
  }
}

void Chain::review(const StepClosed& step) {
  if (wanted_ == CoordinatorOptions::Chain::none) return;
  std::vector<Session*> parts;  // the fastest links first, of equal ones in the order of the roster
  for (const fleet::Member& member : members_.all()) {
    if (!takes_part(member)) continue;
    Session& session = sessions_.at(member.session);
    const auto behind = std::ranges::upper_bound(parts, carries(session), std::ranges::greater(),
                                                 [this](const Session* each) { return carries(*each); });
    parts.insert(behind, &session);
  }
  compare_ways(step, parts);
  if (way() == plan::Way::star) parts.clear();
  const auto here = [&](SessionId id) { return std::ranges::find(parts, id, &Session::id) != parts.end(); };
  for (const fleet::Member& member : members_.all()) {
    Session& each = sessions_.at(member.session);
    if (!each.follows) continue;
    const bool both_here = here(each.id) && here(each.follows->source);
    each.follows->waited += step.duration;
    const bool lost = both_here && !each.follows->live && each.follows->waited > kFoundWithin;
    if (lost) bar(each, sessions_.at(each.follows->source), false);
    if (lost || !both_here) part(each);
  }
  make_room(parts);
  // The last of each chain, and the first of each other one that may follow it.
  for (Session* last : parts) {
    if (follower_of(last->id) != nullptr) continue;
    const Session* head = last;
    while (head->follows) head = &sessions_.at(head->follows->source);
    const auto next = std::ranges::find_if(parts, [&](const Session* each) {
      return each != head && !each->follows && !barred(*each, *last) && !clearly_faster(*each, *last);
    });
    if (next != parts.end()) link(**next, *last);
  }
}

void Chain::link(Session& follower, const Session& source) {
  std::optional<wire::Guest> guest = output_.introduce(source.id, follower.id);
  if (!guest) return;
  guest->id = ++numbers_;
  follower.follows = {.number = numbers_, .source = source.id, .guest = *guest};
  sessions_.say(source, *guest);
}

void Chain::bar(Session& follower, const Session& source, bool for_good) const {
  Session::Bar& bar = follower.bars[source.worker];
  bar.steps = std::max(2 * bar.steps, kBarredSteps);
  bar.until = for_good ? std::numeric_limits<std::uint64_t>::max() : weights_.version() + bar.steps;
}

void Chain::leaves(SessionId id) {
  if (Session* session = sessions_.find(id); session != nullptr && session->follows) part(*session);
}

void Chain::part(Session& follower) {
  const Session::Follows over = *std::exchange(follower.follows, std::nullopt);
  if (const Session* source = sessions_.find(over.source))
    sessions_.say(*source, wire::Guest{.id = over.number, .secret = {}, .spki = {}});
}

void Chain::on_source(const Session& from, const wire::Source& source) {
  Session* follower = follower_of(from.id);
  if (follower == nullptr || follower->follows->number != source.id || follower->follows->named) return;
  follower->follows->named = true;
  wire::Source named = output_.complete(from.id, source);
  named.secret = follower->follows->guest.secret;
  named.hops = 0;
  for (const Session* each = &from; each != nullptr && each->follows; each = sessions_.find(each->follows->source))
    ++named.hops;
  sessions_.say(*follower, named);
}

void Chain::on_follows(Session& session, const wire::Follows& follows) {
  if (session.follows && session.follows->number == follows.id) session.follows->live = true;
}

std::string Chain::on_unfollows(Session& session, const wire::Unfollows& end) {
  std::string text;
  if (session.follows && session.follows->number == end.id) {
    const Session* source = sessions_.find(session.follows->source);
    if (source != nullptr) bar(session, *source, end.wrong);
    if (end.wrong && source != nullptr)
      text = session.name + " got other weights from " + source->name +
             " than this run's; it takes none from there any more (the memory or the network of one of them may be "
             "faulty)";
    part(session);
  }
  weights_.send_again(session, end.version, end.has);
  sessions_.say(session, wire::Unfollows{.id = end.id, .version = weights_.version(), .has = {}});
  return text;
}

}  // namespace motley::engine

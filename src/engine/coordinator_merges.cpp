#include "engine/coordinator_merges.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "codec/codec.h"

namespace motley::engine {
namespace {

bool can_merge(const Session& session) {
  return session.remote() && !session.gone &&
         std::ranges::find(session.hello.features, kMerge) != session.hello.features.end();
}

}  // namespace

Merges::Merges(const CoordinatorOptions& options, const cluster::CoordinatorMachine& machine, const Layout& layout,
               Sessions& sessions, Uploads& uploads, MeasuredPace& pace)
    : possible_(
          (options.chain == CoordinatorOptions::Chain::both || options.chain == CoordinatorOptions::Chain::measured) &&
          options.local_steps == 0),
      gradients_(options.gradients),
      machine_(machine),
      layout_(layout),
      sessions_(sessions),
      uploads_(uploads),
      pace_(pace) {}

const Session* Merges::source_of(const Session& session) const {
  if (!session.follows || !session.follows->live || !can_merge(session)) return nullptr;
  const Session* source = sessions_.find(session.follows->source);
  return source != nullptr && can_merge(*source) ? source : nullptr;
}

// The longest chain, from its end on: who gets weights last computes the first positions.
void Merges::choose_order(bool on) {
  if (!possible_) return;
  on_ = on;
  if (!on) return pace_.set_order({});
  std::vector<fleet::WorkerId> longest;
  for (const fleet::Member& member : machine_.members().all()) {
    if (member.state != fleet::MemberState::member) continue;
    std::vector<fleet::WorkerId> chain;
    for (const Session* at = &sessions_.at(member.session); at != nullptr; at = source_of(*at))
      chain.push_back(at->worker);
    if (chain.size() > longest.size()) longest = std::move(chain);
  }
  if (longest.size() < 2) longest.clear();
  pace_.set_order(std::move(longest));
}

bool Merges::may_merge(const modes::Lease& lease) const {
  const Session* session = sessions_.find(lease.session);
  return session != nullptr && can_merge(*session) && lease.first_of_pass && lease.live();
}

wire::CodecId Merges::codec_of(const modes::Lease& lease) const {
  return gradients_.value_or(pace_.codec(lease.worker));
}

void Merges::begin() {
  MOTLEY_ASSERT(leases_.empty());
  const auto leases = machine_.leases();
  const auto looked_at = [](const modes::Lease& lease) { return lease.withheld || lease.compared; };
  told_ = {};
  if (machine_.version() < resting_until_) {
    told_.ended = "not before step " + std::to_string(resting_until_) + ": " + rests_because_;
    return;
  }
  if (std::ranges::any_of(leases, looked_at)) return;
  std::uint64_t position = 0;
  const Session* next = nullptr;  // whose turn it is
  for (bool first = true; first || next != nullptr; first = false) {
    const auto lease = std::ranges::find(leases, position, [](const modes::Lease& of) { return of.range.first; });
    if (lease == leases.end() || !may_merge(*lease) || (!first && lease->session != next->id)) break;
    leases_.push_back(lease->id);
    position = lease->range.end();
    next = source_of(sessions_.at(lease->session));
  }
  if (leases_.size() < 2) return leases_.clear();
  told_.workers = leases_.size();
  for (std::size_t i = 0; i < leases_.size(); ++i) {
    const Session& to = sessions_.at(machine_.lease(leases_[i])->session);
    wire::Merge merge{.pass = pass_, .lease = leases_[i], .hops = static_cast<std::uint32_t>(i)};
    if (i > 0) {
      merge.before = leases_[i - 1];
      merge.from = sessions_.at(machine_.lease(merge.before)->session).follows->number;
    }
    if (i + 1 < leases_.size()) merge.to = to.follows->number;
    sessions_.say(to, merge);
  }
}

std::optional<Merges::Broken> Merges::broken() const {
  std::optional<std::uint64_t> position = 0;  // where the next one is to begin; empty: not known
  for (std::size_t i = 0; i < leases_.size(); ++i) {
    const modes::Lease* lease = machine_.lease(leases_[i]);
    if (lease == nullptr) return Broken{"a share is gone"};
    const Session* session = sessions_.find(lease->session);
    const auto name = [&] { return session == nullptr ? "a worker that left" : session->name; };
    if (!lease->live() && lease->settled < lease->chunks.size())
      return Broken{"the share of " + name() + " ended before all of it had come"};
    if (lease->overdue) return Broken{"the share of " + name() + " is overdue", true};
    if (lease->withheld) return Broken{"the share of " + name() + " is looked at twice"};
    const bool begun = lease->state != modes::LeaseState::granted;
    if (begun && position && lease->range.first != *position)
      return Broken{"the share before that of " + name() + " was cut short"};
    position = begun ? std::optional(lease->range.end()) : std::nullopt;
    if (i + 1 == leases_.size() || !lease->live()) continue;
    const Session* source = session == nullptr ? nullptr : source_of(*session);
    if (source == nullptr || source->id != machine_.lease(leases_[i + 1])->session)
      return Broken{name() + " follows the next one no longer"};
  }
  return std::nullopt;
}

bool Merges::over() const {
  return std::ranges::none_of(leases_, [this](modes::LeaseId id) {
    const modes::Lease* lease = machine_.lease(id);
    return lease == nullptr || lease->live();
  });
}

bool Merges::all_begun() const {
  return std::ranges::all_of(
      leases_, [this](modes::LeaseId id) { return machine_.lease(id)->state == modes::LeaseState::begun; });
}

std::optional<modes::Event> Merges::next() {
  if (!on_) return std::nullopt;
  const auto& pass = machine_.pass();
  const std::uint64_t open = pass && pass->id.kind == PassKind::train ? pass->id.pack() : 0;
  if (open != pass_) {
    if (pass_ != 0 && told_.workers > 0 && ++good_ % kGoodSteps == 0) rest_ /= 2;
    pass_ = open;
    leases_.clear();
    whole_.clear();
    if (open != 0) begin();
  }
  if (leases_.empty()) return std::nullopt;
  if (std::optional<Broken> now = broken()) {
    end(*std::move(now));
  } else if (over()) {
    leases_.clear();
  }
  if (leases_.empty() || whole_.empty() || !all_begun()) return std::nullopt;
  const ChunkId chunk = whole_.back();
  whole_.pop_back();
  const auto awaits = [&](modes::LeaseId id) {
    return machine_.lease(id)->chunks[chunk] == modes::Lease::ChunkState::awaited;
  };
  if (!std::ranges::all_of(leases_, awaits)) {
    end({"a part of a share came by itself and in a sum", true});
    return std::nullopt;
  }
  uploads_.share(kSum, chunk, leases_);
  const Chunk& place = layout_.chunks()[chunk];
  const double largest = uploads_.encoded(leases_.front(), chunk, place.elements).largest();
  const bool statistic = place.kind == ChunkKind::statistics;
  return modes::MergedArrived{
      leases_, chunk, {.gradient = statistic ? 0 : largest, .statistic = statistic ? largest : 0}};
}

void Merges::add(const Session& from, const wire::Frame& frame) {
  const wire::FrameHeader& header = frame.header;
  if (leases_.empty() || header.pass != pass_ || header.subject != leases_.back()) return;
  const modes::Lease* last = machine_.lease(leases_.back());
  if (last == nullptr || last->session != from.id) return;
  if (last->chunks[header.chunk] != modes::Lease::ChunkState::awaited) return;
  const Chunk& place = layout_.chunks()[header.chunk];
  const wire::CodecId codec = place.kind == ChunkKind::large ? codec_of(*last) : wire::CodecId::fp32;
  const std::optional<SumSegment> segment = segment_of(header, place.elements);
  if (header.version != machine_.version() || header.codec != codec || !segment)
    return end({"a sum came in another form", true});
  if (uploads_.add_segment(kSum, frame, *segment, place.elements)) whole_.push_back(header.chunk);
}

void Merges::on_unmerge(const Session& from, const wire::Unmerge& unmerge) {
  if (leases_.empty() || unmerge.pass != pass_) return;
  const modes::Lease* lease = machine_.lease(unmerge.lease);
  if (lease != nullptr && lease->session == from.id && std::ranges::find(leases_, lease->id) != leases_.end())
    end({unmerge.wrong ? from.name + " got numbers that do not fit its own"
                       : from.name + " waited in vain for what it was to add its own to",
         true});
}

void Merges::refused(ChunkId chunk) {
  uploads_.unshare(chunk, leases_);
  if (!leases_.empty()) end({"a sum is not finite or of an unusual size", true});
}

std::optional<Merged> Merges::told() const { return on_ ? std::optional(told_) : std::nullopt; }

// From here on no sum counts, so that what does count of each lease is known.
void Merges::end(Broken broken) {
  for (const modes::LeaseId id : std::exchange(leases_, {})) {
    const modes::Lease* lease = machine_.lease(id);
    const Session* to = lease != nullptr && lease->live() ? sessions_.find(lease->session) : nullptr;
    if (to == nullptr) continue;
    wire::Unmerge over{.pass = pass_, .lease = id, .has = std::vector<std::uint8_t>((lease->chunks.size() + 7) / 8)};
    for (ChunkId chunk = 0; chunk < lease->chunks.size(); ++chunk)
      if (lease->chunks[chunk] != modes::Lease::ChunkState::awaited)
        over.has[chunk / 8] = static_cast<std::uint8_t>(over.has[chunk / 8] | 1U << chunk % 8);
    sessions_.say(*to, over);
  }
  whole_.clear();
  uploads_.forget(kSum);
  told_ = {.workers = 0, .ended = broken.why};
  good_ = 0;
  if (!broken.faulty) return;
  rest_ = std::max(2 * rest_, kRestSteps);
  resting_until_ = machine_.version() + rest_;
  rests_because_ = std::move(broken.why);
}

}  // namespace motley::engine

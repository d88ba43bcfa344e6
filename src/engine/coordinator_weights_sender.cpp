#include "engine/coordinator_weights_sender.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "wire/limits.h"

namespace motley::engine {
namespace {

wire::Hasher hasher_of(const CoordinatorOptions& options) {
  return options.chain == CoordinatorOptions::Chain::none ? wire::Hasher{} : options.hasher;
}

}  // namespace

WeightsSender::WeightsSender(const ps::Server& server, const CoordinatorOptions& options, Sessions& sessions,
                             const fleet::Roster& members, const MeasuredPace& pace)
    : server_(server),
      codec_(options.weights),
      chain_bytes_min_(options.chain_bytes_min),
      sessions_(sessions),
      members_(members),
      pace_(pace),
      current_(chunks(), hasher_of(options)),
      next_(chunks(), hasher_of(options)) {
  current_.set_version(server.version());
  next_.set_version(server.version() + 1);
  for (ChunkId chunk = 0; chunk < chunks(); ++chunk) current_.set(chunk, server.weights(chunk));
}

VersionFrames::Reader WeightsSender::reader(const Session& to, const VersionFrames& frames, Lane lane) const {
  return {.local = to.local(),
          .checksum = sessions_.checksums(to),
          .holds_before = to.holds && *to.holds + 1 == frames.version(),
          .background = lane == Lane::background};
}

std::size_t WeightsSender::send_chunk(const Session& to, VersionFrames& frames, ChunkId chunk, Lane lane,
                                      const VersionFrames::Reader& reader) {
  if (to.gone) return 0;
  std::size_t bytes = 0;
  frames.each(chunk, sessions_.header(to), reader, [&](wire::Frame frame) {
    bytes += frame.body.size();
    sessions_.pass_on(to, std::move(frame), lane);
  });
  return bytes;
}

void WeightsSender::send(Session& to, bool urgent, bool timed, Time now) {
  std::size_t bytes = 0;
  for (ChunkId chunk = 0; chunk < chunks(); ++chunk)
    bytes += send_chunk(to, current_, chunk, urgent ? Lane::weights : Lane::background);
  to.weights_sent.reset();
  if (timed) to.weights_sent = {current_.version(), now, bytes};
  // What comes on the lane of weights may overtake the background.
  if (urgent) to.holds = current_.version();
}

void WeightsSender::send_next(const Session& to) {
  for (ChunkId chunk = 0; chunk < chunks(); ++chunk)
    if (next_.has(chunk)) send_chunk(to, next_, chunk, Lane::weights);
}

void WeightsSender::publish(ChunkId chunk, const SharedBytes& exact) {
  make_next(chunk, exact);
  std::vector<SessionId> followed;
  for (const fleet::Member& member : members_.all()) {
    const Session& to = sessions_.at(member.session);
    if (member.streams && comes_by_hash(to, chunk)) followed.push_back(to.follows->source);
  }
  for (const fleet::Member& member : members_.all()) {
    if (!member.streams) continue;
    Session& to = sessions_.at(member.session);
    VersionFrames::Reader how = reader(to, next_, Lane::weights);
    how.hand_on = std::ranges::find(followed, to.id) != followed.end();
    if (comes_by_hash(to, chunk)) {
      how.follows = to.follows->number;
      to.next_by_hash.resize(chunks());
      to.next_by_hash[chunk] = true;
    }
    send_chunk(to, next_, chunk, Lane::weights, how);
  }
}

bool WeightsSender::comes_by_hash(const Session& to, ChunkId chunk) const {
  if (!to.follows || !to.follows->live || !holds_current(to)) return false;
  const fleet::Member* source = members_.find(to.follows->source);
  return source != nullptr && source->streams && holds_current(sessions_.at(source->session)) &&
         next_.may_follow(chunk, chain_bytes_min_);
}

void WeightsSender::send_again(Session& to, std::uint64_t version, const std::vector<std::uint8_t>& has) {
  for (VersionFrames* frames : {&current_, &next_}) {
    const std::vector<bool> sent = std::exchange(frames == &next_ ? to.next_by_hash : to.by_hash, {});
    if (frames->version() < version) continue;
    VersionFrames::Reader how = reader(to, *frames, Lane::weights);
    how.holds_before = true;
    for (ChunkId chunk = 0; chunk < sent.size(); ++chunk) {
      const bool there =
          frames->version() == version && chunk / 8 < has.size() && (has[chunk / 8] >> chunk % 8 & 1) != 0;
      if (sent[chunk] && !there && frames->has(chunk)) send_chunk(to, *frames, chunk, Lane::weights, how);
    }
  }
}

void WeightsSender::make_next(ChunkId chunk, const SharedBytes& exact) {
  const bool large = server_.layout().chunks()[chunk].kind == ChunkKind::large;
  const wire::CodecId delta = large ? codec() : wire::CodecId::fp32;
  const auto moves = [&](const fleet::Member& member) {
    const Session& to = sessions_.at(member.session);
    return member.streams && !to.local() && to.holds == current_.version();
  };
  // While nobody needs a delta, what workers hold is exact.
  if (delta != wire::CodecId::fp32 && std::ranges::any_of(members_.all(), moves))
    return next_.approach(chunk, exact, current_.held(chunk), delta, pool_);
  next_.set(chunk, exact);
}

// All hold the same bits, so the slowest link decides.
wire::CodecId WeightsSender::codec() const {
  if (codec_) return *codec_;
  wire::CodecId least = wire::CodecId::fp32;
  for (const fleet::Member& member : members_.all())
    if (member.streams && !sessions_.at(member.session).local()) least = std::max(least, pace_.codec(member.worker));
  return least;
}

void WeightsSender::advance() {
  MOTLEY_ASSERT(next_.version() == server_.version());
  std::swap(current_, next_);
  next_.clear();
  next_.set_version(server_.version() + 1);
  for (const fleet::Member& member : members_.all()) {
    Session& session = sessions_.at(member.session);
    if (member.streams) session.holds = current_.version();
    session.by_hash = std::exchange(session.next_by_hash, {});
  }
}

void WeightsSender::adopt(const ps::Snapshot& after) {
  current_.set_version(server_.version());
  next_.set_version(server_.version() + 1);
  for (ChunkId chunk = 0; chunk < after.weights.size(); ++chunk) current_.set(chunk, after.weights[chunk]);
  for (const fleet::Member& member : members_.all())
    sessions_.at(member.session).by_hash = sessions_.at(member.session).next_by_hash = {};
}

bool WeightsSender::held_exactly() const {
  for (ChunkId chunk = 0; chunk < chunks(); ++chunk)
    if (current_.held(chunk).bytes().data() != server_.weights(chunk).bytes().data()) return false;
  return true;
}

}  // namespace motley::engine

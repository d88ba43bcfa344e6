#include "engine/head/weights_sender.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace motley::engine {

WeightsSender::WeightsSender(const ps::Server& server, std::optional<wire::CodecId> codec, Sessions& sessions,
                             const fleet::Roster& members, const MeasuredPerformance& performance)
    : server_(server),
      codec_(codec),
      sessions_(sessions),
      members_(members),
      performance_(performance),
      current_(chunks()),
      next_(chunks()) {
  current_.set_version(server.version());
  next_.set_version(server.version() + 1);
  for (ChunkId chunk = 0; chunk < chunks(); ++chunk) current_.set(chunk, server.weights(chunk));
}

std::size_t WeightsSender::send_chunk(const Session& to, VersionFrames& frames, ChunkId chunk, Lane lane) {
  if (to.gone) return 0;
  std::size_t bytes = 0;
  const VersionFrames::Reader reader{.local = to.local(),
                                     .checksum = sessions_.checksums(to),
                                     .holds_before = to.holds && *to.holds + 1 == frames.version(),
                                     .background = lane == Lane::background};
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
  for (const fleet::Member& member : members_.all())
    if (member.streams) send_chunk(sessions_.at(member.session), next_, chunk, Lane::weights);
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
    if (member.streams && !sessions_.at(member.session).local())
      least = std::max(least, performance_.codec(member.worker));
  return least;
}

void WeightsSender::advance() {
  MOTLEY_ASSERT(next_.version() == server_.version());
  std::swap(current_, next_);
  next_.clear();
  next_.set_version(server_.version() + 1);
  for (const fleet::Member& member : members_.all())
    if (member.streams) sessions_.at(member.session).holds = current_.version();
}

void WeightsSender::adopt(const ps::Snapshot& after) {
  current_.set_version(server_.version());
  next_.set_version(server_.version() + 1);
  for (ChunkId chunk = 0; chunk < after.weights.size(); ++chunk) current_.set(chunk, after.weights[chunk]);
}

bool WeightsSender::held_exactly() const {
  for (ChunkId chunk = 0; chunk < chunks(); ++chunk)
    if (current_.held(chunk).bytes().data() != server_.weights(chunk).bytes().data()) return false;
  return true;
}

}  // namespace motley::engine

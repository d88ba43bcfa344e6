#include "engine/worker/gradients.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "wire/limits.h"

namespace motley::engine {

void GradientSender::connected() {
  lease_ = 0;
  sent_.reset();
}

void GradientSender::send(const wire::Grant& lease, wire::FrameHeader header, const Chunk& place,
                          const SharedBytes& gradient, bool checksums, Time now) {
  MOTLEY_ASSERT(gradient.size() == std::size_t{place.elements} * sizeof(float));
  const bool there = gradient.on_device() != nullptr;  // goes to the coordinator of this process, whole and unread
  const bool encoded = !there && lease.codec != 0 && place.kind == ChunkKind::large;
  const SharedBytes body = encoded ? feedback_.encode(lease, header.chunk, gradient.floats()) : gradient;
  header.codec = encoded ? static_cast<wire::CodecId>(lease.codec) : wire::CodecId::fp32;
  header.type = place.kind == ChunkKind::statistics ? wire::FrameType::statistic : wire::FrameType::gradient;
  header.pass = lease.pass;
  header.subject = lease.lease;
  header.version = lease.version;
  header.total = static_cast<std::uint32_t>(body.size());
  if (std::exchange(lease_, lease.lease) != lease.lease) departures_.clear();
  departures_.push_back({body.size(), seconds(now)});
  const std::size_t step = there ? body.size() : wire::kBodyBytesMax;
  for (std::size_t offset = 0; offset < body.size(); offset += step) {
    header.offset = static_cast<std::uint32_t>(offset);
    const std::size_t count = std::min(step, body.size() - offset);
    output_.send(wire::seal(header, body.slice(offset, count), checksums), Lane::gradients);
  }
}

void GradientSender::taken(const wire::Taken& taken, Time now) {
  feedback_.taken(taken);
  if (taken.lease != lease_) return;
  lease_ = 0;
  const plan::Transfer busy = plan::busy_part(departures_, seconds(now));
  if (busy.bytes > 0) sent_ = {taken.lease, busy};
}

void GradientSender::report(wire::Finish& finish) {
  const auto before = std::exchange(sent_, std::nullopt);
  if (!before) return;
  finish.sent_lease = before->lease;
  finish.sent_bytes = before->transfer.bytes;
  finish.sent_seconds = before->transfer.seconds;
}

}  // namespace motley::engine

#include "engine/worker_merging.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "codec/codec.h"
#include "wire/limits.h"

namespace motley::engine {
namespace {

constexpr Duration kStoodStill = std::chrono::milliseconds(500);  // between two looks: what came is still unread
constexpr std::size_t kEarlyBytesLeast = 32U << 20;               // of what came before it was known what for

std::size_t bytes_of_early(const wire::Frame& frame) noexcept { return sizeof frame + frame.body.size(); }

wire::FrameType type_of(const Chunk& chunk) {
  return chunk.kind == ChunkKind::statistics ? wire::FrameType::statistic : wire::FrameType::gradient;
}

}  // namespace

void Merging::reset() {
  layout_.reset();
  merge_.reset();
  lease_.reset();
  slots_.clear();
  out_.clear();
  over_ = 0;
  drop_early();
}

void Merging::prepare(const Layout& layout) { layout_ = layout; }

void Merging::drop_early() {
  early_.clear();
  early_bytes_ = 0;
}

void Merging::begin(const wire::Merge& merge, Duration hop, Time now) {
  if (!layout_) return;
  merge_ = merge;
  lease_.reset();
  slots_.assign(layout_->chunks().size(), {});
  out_.clear();
  newest_ = looked_ = begun_ = now;
  hops_ = kWaysOfAHop * std::min<std::uint32_t>(merge.hops, wire::kSessionsMax) * hop;
  patience_ = kPatience + hops_;
  gave_up_ = false;
  for (const auto& [guest, frame] : std::exchange(early_, {}))
    if (guest == merge.from && merge.from != 0 && is_ours(frame.header) && !take(frame)) return drop_early();
  early_bytes_ = 0;
}

wire::FrameHeader Merging::header_of(ChunkId chunk) const {
  const Chunk& place = layout_->chunks()[chunk];
  wire::FrameHeader header;
  header.type = type_of(place);
  header.flags = wire::kMerged;
  header.codec = place.kind == ChunkKind::large ? static_cast<wire::CodecId>(lease_->codec) : wire::CodecId::fp32;
  header.pass = lease_->pass;
  header.subject = lease_->lease;
  header.version = lease_->version;
  header.chunk = chunk;
  return header;
}

void Merging::send(ChunkId chunk, const SumSegment& segment, SharedBytes sum) {
  const std::size_t elements = layout_->chunks()[chunk].elements;
  wire::FrameHeader header = header_of(chunk);
  describe(header, segment, elements);
  if (header.codec != wire::CodecId::fp32)
    sum = feedback_.encode(*lease_, chunk, elements, segment.first, sum.floats());
  out_.push_back({merge_->to, {header, std::move(sum)}});
}

void Merging::add(const wire::Grant& lease, ChunkId chunk, const SharedBytes& gradient, Time now) {
  MOTLEY_ASSERT(is_of(lease.lease) && chunk < slots_.size());
  Slot& slot = slots_[chunk];
  if (!slot.own.empty()) return;  // the coordinator granted it twice
  if (!waits()) newest_ = now;
  if (!lease_) patience_ = std::max(kPatience, (now - begun_) / kOfItsOwnTime) + hops_;
  lease_ = lease;
  slot.own = gradient;
  if (merge_->from != 0) {
    for (const wire::Frame& frame : std::exchange(slot.came, {})) pass_on(frame);
    return;
  }
  const std::size_t elements = layout_->chunks()[chunk].elements;
  for (std::size_t first = 0; first < elements; first += kSegmentElements) {
    const std::size_t count = std::min(kSegmentElements, elements - first);
    send(chunk, {first, count}, gradient.slice(first * sizeof(float), count * sizeof(float)));
  }
}

bool Merging::is_ours(const wire::FrameHeader& header) const noexcept {
  return merge_ && header.pass == merge_->pass && header.subject == merge_->before;
}

bool Merging::fits(const wire::FrameHeader& header, std::size_t body) const {
  if (header.chunk >= layout_->chunks().size() || header.length != body) return false;
  const Chunk& place = layout_->chunks()[header.chunk];
  const bool exact = place.kind != ChunkKind::large;
  return header.type == type_of(place) && (!exact || header.codec == wire::CodecId::fp32) &&
         segment_of(header, place.elements);
}

bool Merging::add_from_guest(std::uint64_t guest, const wire::Frame& frame, Time now) {
  if (!layout_ || !fits(frame.header, frame.body.size())) return false;
  if (is_ours(frame.header) && merge_->from == guest) {
    newest_ = now;
    return gave_up_ || take(frame);
  }
  if (frame.header.pass == over_) return true;
  // Maybe of the step to come.
  const auto most = std::max<std::uint64_t>(kEarlyBytesLeast, 2 * layout_->flat_elements() * sizeof(float));
  if (early_bytes_ + bytes_of_early(frame) > most) drop_early();
  early_bytes_ += bytes_of_early(frame);
  early_.emplace_back(guest, frame);
  return true;
}

bool Merging::take(const wire::Frame& frame) {
  Slot& slot = slots_[frame.header.chunk];
  const std::size_t elements = layout_->chunks()[frame.header.chunk].elements;
  slot.came_elements += segment_of(frame.header, elements)->count;
  if (slot.came_elements > elements) return false;
  if (slot.own.empty()) {
    slot.came.push_back(frame);
  } else {
    pass_on(frame);
  }
  return true;
}

void Merging::pass_on(const wire::Frame& frame) {
  const SumSegment segment = *segment_of(frame.header, layout_->chunks()[frame.header.chunk].elements);
  const auto came = codec::Encoded::make(frame.header.codec, frame.body.bytes(), segment.count);
  MOTLEY_ASSERT(came);
  MutableBytes sum = pool_.take(segment.count * sizeof(float));
  const std::span<float> into = sum.floats();
  std::ranges::copy(slots_[frame.header.chunk].own.floats().subspan(segment.first, segment.count), into.begin());
  came->add_to(0, into);
  send(frame.header.chunk, segment, std::move(sum).seal());
}

std::optional<Merging::Outgoing> Merging::next() {
  if (out_.empty()) return std::nullopt;
  Outgoing first = std::move(out_.front());
  out_.pop_front();
  return first;
}

bool Merging::waits() const {
  return merge_ && merge_->from != 0 && std::ranges::any_of(slots_, [](const Slot& slot) {
           return !slot.own.empty() && slot.came_elements * sizeof(float) < slot.own.size();
         });
}

bool Merging::overdue(Time now) {
  if (now - std::exchange(looked_, now) > kStoodStill) newest_ = now;
  return !gave_up_ && now - newest_ > patience_ && waits();
}

std::optional<wire::Unmerge> Merging::give_up(bool wrong) {
  if (!merge_ || std::exchange(gave_up_, true)) return std::nullopt;
  return wire::Unmerge{.pass = merge_->pass, .lease = merge_->lease, .has = {}, .wrong = wrong};
}

Merging::Kept Merging::end(const wire::Unmerge& unmerge) {
  Kept kept;
  if (!is_of(unmerge.lease) || merge_->pass != unmerge.pass) return kept;
  if (lease_) kept.lease = *lease_;
  const auto has = [&](ChunkId chunk) {
    return chunk / 8 < unmerge.has.size() && (unmerge.has[chunk / 8] >> chunk % 8 & 1) != 0;
  };
  for (ChunkId chunk = 0; chunk < slots_.size(); ++chunk)
    if (!slots_[chunk].own.empty() && !has(chunk)) kept.chunks.emplace_back(chunk, std::move(slots_[chunk].own));
  taken(unmerge.lease);
  return kept;
}

void Merging::taken(std::uint64_t lease) {
  if (!is_of(lease)) return;
  over_ = merge_->pass;
  merge_.reset();
  slots_.clear();
  out_.clear();
}

void Merging::closed(std::uint64_t pass) {
  if (merge_ && merge_->pass == pass) taken(merge_->lease);
  over_ = pass;
  std::erase_if(early_, [&](const auto& came) { return came.second.header.pass == pass; });
  early_bytes_ = 0;
  for (const auto& [guest, frame] : early_) early_bytes_ += bytes_of_early(frame);
}

}  // namespace motley::engine

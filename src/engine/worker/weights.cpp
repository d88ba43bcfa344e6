#include "engine/worker/weights.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "base/assert.h"
#include "base/xxh64.h"
#include "wire/limits.h"

namespace motley::engine {
namespace {

Error malformed(std::string message) {
  return {ErrorCode::protocol, std::move(message), "update motley on both machines to the same version"};
}

bool float_aligned(std::span<const std::byte> bytes) noexcept {
  return std::bit_cast<std::uintptr_t>(bytes.data()) % alignof(float) == 0;
}

}  // namespace

void ByteCover::add(std::uint64_t offset, std::uint64_t length) {
  if (length == 0) return;
  std::pair<std::uint64_t, std::uint64_t> span{offset, offset + length};
  auto first = std::find_if(spans_.begin(), spans_.end(), [&](const auto& s) { return s.second >= span.first; });
  auto last = first;
  while (last != spans_.end() && last->first <= span.second) {
    span = {std::min(span.first, last->first), std::max(span.second, last->second)};
    ++last;
  }
  spans_.insert(spans_.erase(first, last), span);
}

// --- weights ---

void WeightsAssembler::reset(const Layout& layout) {
  forget();
  const auto chunks = layout.chunks();
  places_.assign(chunks.begin(), chunks.end());
}

void WeightsAssembler::forget() {
  slots_ = {};
  adopted_.reset();
  current_.clear();
}

Status WeightsAssembler::check(const wire::Frame& frame) const {
  const wire::FrameHeader& header = frame.header;
  const std::size_t body_bytes = frame.body.size();
  if (header.chunk >= places_.size()) {
    return malformed("weights of chunk " + std::to_string(header.chunk) + " arrived; the model has " +
                     std::to_string(places_.size()) + " chunks");
  }
  const motley::Chunk& place = places_[header.chunk];
  const bool delta = header.codec != wire::CodecId::fp32;
  const std::size_t expected = codec::encoded_bytes(header.codec, place.elements);
  const bool possible = place.kind == ChunkKind::large && header.version > 0;
  if (header.total != expected || (delta && !possible)) {
    return malformed("weights of chunk " + std::to_string(header.chunk) + " should be " +
                     std::to_string(place.elements * sizeof(float)) + " bytes of fp32" +
                     (place.kind == ChunkKind::large ? ", or a delta" : "") + "; found " +
                     std::to_string(header.total) + " bytes of codec " +
                     std::to_string(static_cast<unsigned>(header.codec)));
  }
  if (header.length != body_bytes || header.length == 0 || std::uint64_t{header.offset} + header.length > expected) {
    return malformed("a segment of chunk " + std::to_string(header.chunk) + " covers bytes " +
                     std::to_string(header.offset) + " + " + std::to_string(header.length) + " of " +
                     std::to_string(expected) + " and carries " + std::to_string(body_bytes));
  }
  return {};
}

bool WeightsAssembler::knows(std::uint64_t version) const noexcept {
  if (adopted_ && version <= *adopted_) return true;
  return find(version) != nullptr;
}

WeightsAssembler::Version* WeightsAssembler::slot_of(std::uint64_t version) {
  if (adopted_ && version <= *adopted_) return nullptr;
  std::unique_ptr<Version>* slot = nullptr;
  // With a version in use one more may be under way; a joiner may see two that are not whole yet.
  const std::size_t slots = adopted_ ? 1 : 2;
  for (std::size_t i = 0; i < slots; ++i) {
    std::unique_ptr<Version>& candidate = slots_[i];
    if (!candidate) {
      if (!slot || *slot) slot = &candidate;
    } else if (candidate->number == version) {
      return candidate.get();
    } else if (candidate->number < version && candidate->missing > 0) {
      if (!slot || (*slot && (*slot)->number > candidate->number)) slot = &candidate;
    }
  }
  if (!slot) return nullptr;
  *slot = std::make_unique<Version>();
  (*slot)->number = version;
  (*slot)->chunks.resize(places_.size());
  (*slot)->missing = places_.size();
  return slot->get();
}

SharedBytes WeightsAssembler::collect(Chunk& chunk, const wire::Frame& frame) {
  const wire::FrameHeader& header = frame.header;
  const auto body = frame.body.bytes();
  const bool delta = header.codec != wire::CodecId::fp32;
  if (header.length == header.total && (delta || float_aligned(body))) return frame.body;
  // A chunk may be sent once more in another form: to a worker that asked for everything again.
  if (chunk.filling.bytes().size() != header.total || chunk.codec != header.codec) {
    chunk.filling = pool_.take(header.total);
    chunk.codec = header.codec;
    chunk.cover = {};
  }
  std::memcpy(chunk.filling.bytes().data() + header.offset, body.data(), body.size());
  chunk.cover.add(header.offset, header.length);
  return chunk.cover.covers(header.total) ? std::move(chunk.filling).seal() : SharedBytes();
}

Result<WeightsAssembler::Added> WeightsAssembler::add(const wire::Frame& frame) {
  const wire::FrameHeader& header = frame.header;
  const bool delta = header.codec != wire::CodecId::fp32;
  if (delta && adopted_ != header.version - 1) return Added::part;
  Version* version = slot_of(header.version);
  if (!version) return Added::part;
  Chunk& chunk = version->chunks[header.chunk];
  if (chunk.done) return Added::part;
  SharedBytes bytes = collect(chunk, frame);
  if (bytes.empty()) return Added::part;
  chunk.filling = MutableBytes();
  if (delta) {
    const SharedBytes& before = current_[header.chunk];
    MutableBytes moved = pool_.take(before.size());
    if (!codec::add_delta(header.codec, bytes.bytes(), before.floats(), moved.floats(), set_)) {
      return malformed("the delta of chunk " + std::to_string(header.chunk) + " to version " +
                       std::to_string(header.version) + " has a scale or number that no encoder writes");
    }
    bytes = std::move(moved).seal();
    if (header.subject != 0 && xxh64(bytes.bytes()) != header.subject) return Added::differs;
  }
  chunk.whole = std::move(bytes);
  chunk.done = true;
  MOTLEY_ASSERT(version->missing > 0);
  return --version->missing == 0 ? Added::whole : Added::chunk;
}

void WeightsAssembler::adopt(std::uint64_t version) {
  MOTLEY_ASSERT(!adopted_ || version > *adopted_);
  std::unique_ptr<Version> found;
  for (auto& slot : slots_) {
    if (!slot || slot->number > version) continue;
    if (slot->number == version) found = std::move(slot);
    slot.reset();
  }
  MOTLEY_ASSERT(found && found->missing == 0);
  current_.clear();
  for (Chunk& chunk : found->chunks) current_.push_back(std::move(chunk.whole));
  adopted_ = version;
  if (!slots_[0]) slots_[0] = std::move(slots_[1]);
}

const WeightsAssembler::Version* WeightsAssembler::find(std::uint64_t version) const noexcept {
  const auto found = std::ranges::find_if(slots_, [&](const auto& slot) { return slot && slot->number == version; });
  return found == slots_.end() ? nullptr : found->get();
}

SharedBytes WeightsAssembler::weights(std::uint64_t version, ChunkId chunk) const {
  if (adopted_ == version) return current_[chunk];
  const Version* arriving = find(version);
  return arriving == nullptr ? SharedBytes() : arriving->chunks[chunk].whole;
}

std::vector<SharedBytes> WeightsAssembler::weights(std::uint64_t version) const {
  std::vector<SharedBytes> found(places_.size());
  for (ChunkId chunk = 0; chunk < found.size(); ++chunk) found[chunk] = weights(version, chunk);
  return found;
}

// --- what a script gives ---

void BlobAssembler::reset() {
  expected_.reset();
  total_.reset();
  bytes_.reset();
  cover_ = ByteCover();
  taken_ = false;
}

Status BlobAssembler::expect(std::uint64_t bytes) {
  if (bytes >= wire::kBlobBytesMax) {
    return malformed("what a script gives may have less than " + std::to_string(wire::kBlobBytesMax) +
                     " bytes; found " + std::to_string(bytes));
  }
  if (total_ && *total_ != bytes) {
    return malformed("what the script gives should have " + std::to_string(bytes) + " bytes; found " +
                     std::to_string(*total_));
  }
  expected_ = bytes;
  return {};
}

Status BlobAssembler::add(const wire::Frame& frame) {
  const wire::FrameHeader& header = frame.header;
  if (taken_) return {};
  const std::uint64_t total = expected_.value_or(total_.value_or(header.total));
  if (header.total != total || header.length != frame.body.size() ||
      std::uint64_t{header.offset} + header.length > total) {
    return malformed("what the script gives should have " + std::to_string(total) + " bytes; found a segment of " +
                     std::to_string(frame.body.size()) + " at " + std::to_string(header.offset) + " of " +
                     std::to_string(header.total));
  }
  total_ = total;
  if (!bytes_) bytes_ = std::make_shared<std::vector<std::byte>>(total);
  std::memcpy(bytes_->data() + header.offset, frame.body.bytes().data(), frame.body.size());
  cover_.add(header.offset, header.length);
  return {};
}

std::optional<SharedBytes> BlobAssembler::take() {
  if (taken_ || !expected_ || !cover_.covers(*expected_)) return std::nullopt;
  taken_ = true;
  if (!bytes_) return SharedBytes();
  const std::span<const std::byte> bytes(*bytes_);
  return SharedBytes(std::exchange(bytes_, nullptr), bytes);
}

}  // namespace motley::engine

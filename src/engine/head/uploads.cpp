#include "engine/head/uploads.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/assert.h"

namespace motley::engine {
namespace {

bool holds_floats(std::span<const std::byte> bytes) noexcept {
  return reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(float) == 0;
}

}  // namespace

Uploads::Upload* Uploads::find(modes::LeaseId lease) noexcept {
  for (std::size_t i = 0; i < used_; ++i)
    if (uploads_[i].lease == lease) return &uploads_[i];
  return nullptr;
}

const Uploads::Upload* Uploads::find(modes::LeaseId lease) const noexcept {
  for (std::size_t i = 0; i < used_; ++i)
    if (uploads_[i].lease == lease) return &uploads_[i];
  return nullptr;
}

Uploads::Upload& Uploads::make(modes::LeaseId lease) {
  if (Upload* upload = find(lease)) return *upload;
  if (used_ == uploads_.size()) uploads_.emplace_back().slots.resize(chunks_);
  Upload& upload = uploads_[used_++];
  upload.lease = lease;
  return upload;
}

bool Uploads::fits(modes::LeaseId lease, const wire::FrameHeader& header) const {
  const Upload* upload = find(lease);
  if (upload == nullptr) return true;
  const Slot& slot = upload->slots[header.chunk];
  return slot.state != State::filling || slot.codec == header.codec;
}

bool Uploads::add(modes::LeaseId lease, const wire::Frame& frame) {
  const wire::FrameHeader& header = frame.header;
  MOTLEY_ASSERT(header.chunk < chunks_ && header.length == frame.body.size());
  MOTLEY_ASSERT(std::uint64_t{header.offset} + header.length <= header.total);
  Slot& slot = make(lease).slots[header.chunk];
  if (slot.state != State::empty && slot.state != State::filling) return false;
  slot.codec = header.codec;
  const auto body = frame.body.bytes();
  if (header.length == header.total && holds_floats(body)) {
    if (slot.state == State::filling) release(slot);
    slot.whole = frame.body;
  } else {
    if (slot.state == State::empty) {
      slot.filling = pool_.take(header.total);
      slot.received.clear();
      slot.state = State::filling;
    }
    MOTLEY_ASSERT(slot.filling.bytes().size() == header.total);
    std::memcpy(slot.filling.bytes().data() + header.offset, body.data(), body.size());
    slot.received.insert({header.offset, header.length});
    if (slot.received.size() < header.total) return false;
    slot.whole = std::move(slot.filling).seal();
    slot.filling = MutableBytes();
  }
  slot.state = State::whole;
  return true;
}

bool Uploads::has(modes::LeaseId lease, ChunkId chunk) const noexcept {
  const Upload* upload = find(lease);
  return upload != nullptr && upload->slots[chunk].state == State::whole;
}

codec::Encoded Uploads::encoded(modes::LeaseId lease, ChunkId chunk, std::size_t elements) const {
  const Upload* upload = find(lease);
  MOTLEY_ASSERT(upload != nullptr && upload->slots[chunk].state == State::whole);
  const Slot& slot = upload->slots[chunk];
  const auto values = codec::Encoded::make(slot.codec, slot.whole.bytes(), elements);
  MOTLEY_ASSERT(values.has_value());
  return *values;
}

GradientPart Uploads::part(modes::LeaseId lease, ChunkId chunk) const {
  const Upload* upload = find(lease);
  MOTLEY_ASSERT(upload != nullptr && upload->slots[chunk].state == State::whole);
  const Slot& slot = upload->slots[chunk];
  return {static_cast<std::uint8_t>(slot.codec), slot.whole};
}

void Uploads::release(Slot& slot) {
  slot.whole = SharedBytes();
  slot.filling = MutableBytes();
  slot.state = State::released;
}

void Uploads::release(modes::LeaseId lease, ChunkId chunk) {
  if (Upload* upload = find(lease)) release(upload->slots[chunk]);
}

void Uploads::abandon(modes::LeaseId lease, const modes::Coverage& coverage) {
  Upload* upload = find(lease);
  if (upload == nullptr) return;
  for (ChunkId chunk = 0; chunk < chunks_; ++chunk) {
    // An evaluation has one chunk only, and no payloads at all.
    const bool kept = chunk < coverage.chunks() && coverage.accepted(lease, chunk) && !coverage.reduced(chunk);
    if (!kept) release(upload->slots[chunk]);
  }
}

void Uploads::clear() {
  for (std::size_t i = 0; i < used_; ++i) {
    for (Slot& slot : uploads_[i].slots) {
      release(slot);
      slot.state = State::empty;
    }
  }
  used_ = 0;
}

}  // namespace motley::engine

#include "engine/head/weights.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/xxh64.h"
#include "codec/delta.h"
#include "wire/limits.h"

namespace motley::engine {

void VersionFrames::set(Form& form, SharedBytes bytes) {
  form.bytes = std::move(bytes);
  form.checksums.clear();
}

void VersionFrames::set(ChunkId chunk, SharedBytes bytes) {
  MOTLEY_ASSERT(!bytes.empty());
  set(chunks_[chunk].whole, std::move(bytes));
  set(chunks_[chunk].delta, {});
}

void VersionFrames::approach(ChunkId chunk, const SharedBytes& exact, const SharedBytes& before, wire::CodecId codec,
                             BufferPool& pool) {
  MutableBytes body = pool.take(codec::encoded_bytes(codec, exact.floats().size()));
  MutableBytes moved = pool.take(exact.size());
  if (!codec::encode_delta(codec, exact.floats(), before.floats(), body.bytes(), moved.floats()))
    return set(chunk, exact);
  ChunkFrames& frames = chunks_[chunk];
  frames.codec = codec;
  frames.hash = (version_ + chunk) % kHashEvery == 0 ? xxh64(moved.bytes()) : 0;
  set(frames.whole, std::move(moved).seal());
  set(frames.delta, std::move(body).seal());
}

void VersionFrames::clear() {
  for (ChunkFrames& frames : chunks_) {
    set(frames.whole, {});
    set(frames.delta, {});
  }
}

wire::Frame VersionFrames::segment(Form& form, wire::FrameHeader header, std::size_t offset, Reader reader) {
  MOTLEY_ASSERT(!form.bytes.empty());
  if (reader.local) return wire::seal(header, form.bytes, false);
  SharedBytes body = form.bytes.slice(offset, std::min(body_bytes(reader), form.bytes.size() - offset));
  header.offset = static_cast<std::uint32_t>(offset);
  if (reader.background || !reader.checksum) return wire::seal(header, std::move(body), reader.checksum);
  if (form.checksums.empty()) {
    for (std::size_t at = 0; at < form.bytes.size(); at += wire::kBodyBytesMax) {
      const std::size_t count = std::min(wire::kBodyBytesMax, form.bytes.size() - at);
      form.checksums.push_back(crc32c(form.bytes.bytes().subspan(at, count)));
    }
  }
  header.body_crc = form.checksums[offset / wire::kBodyBytesMax];
  return wire::seal(header, std::move(body), false);
}

}  // namespace motley::engine

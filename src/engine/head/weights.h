#pragma once
// The frames that carry one version of the weights. Bytes are made once and shared by all sessions, and so are
// checksums but for what goes in the background. One thread at a time.

#include <cstdint>
#include <vector>

#include "motley/bytes.h"
#include "motley/layout.h"
#include "wire/frame.h"
#include "wire/limits.h"

namespace motley::engine {

class VersionFrames {
 public:
  /// A chunk's delta has the hash of what it leads to once in so many versions; chunks take turns.
  static constexpr std::uint64_t kHashEvery = 64;

  explicit VersionFrames(std::size_t chunks) : chunks_(chunks) {}

  void set_version(std::uint64_t version) noexcept { version_ = version; }
  [[nodiscard]] std::uint64_t version() const noexcept { return version_; }
  void set(ChunkId chunk, SharedBytes bytes);
  /// What a delta from `before` leads to in place of `exact`; `exact` itself where there is no such delta. REQUIRES
  /// floats, of one length; a codec that is not fp32.
  void approach(ChunkId chunk, const SharedBytes& exact, const SharedBytes& before, wire::CodecId codec,
                BufferPool& pool);
  [[nodiscard]] bool has(ChunkId chunk) const noexcept { return !chunks_[chunk].whole.bytes.empty(); }
  /// What those hold that have this version. REQUIRES has(chunk).
  [[nodiscard]] const SharedBytes& held(ChunkId chunk) const noexcept { return chunks_[chunk].whole.bytes; }
  void clear();

  struct Reader {
    bool local = false;  // frames in the same process go whole and without checksum
    bool checksum = true;
    bool holds_before = false;  // the version before this one, all of it: a delta will do
    bool background = false;    // in segments short enough for others to come in between
  };
  /// Calls send(frame) for every segment.
  template <class Send>
  void each(ChunkId chunk, wire::FrameHeader header, Reader reader, Send&& send) {
    ChunkFrames& frames = chunks_[chunk];
    const bool moves = reader.holds_before && !reader.local && !frames.delta.bytes.empty();
    Form& form = moves ? frames.delta : frames.whole;
    header.type = wire::FrameType::weights;
    header.version = version_;
    header.chunk = chunk;
    header.total = static_cast<std::uint32_t>(form.bytes.size());
    if (moves) {
      header.codec = frames.codec;
      header.subject = frames.hash;
    }
    const std::size_t step = reader.local ? form.bytes.size() : body_bytes(reader);
    for (std::size_t at = 0; at < form.bytes.size(); at += step) send(segment(form, header, at, reader));
  }

 private:
  struct Form {
    SharedBytes bytes;
    std::vector<std::uint32_t> checksums;  // of the bodies in turn; empty until somebody needs them
  };
  struct ChunkFrames {
    Form whole, delta;
    wire::CodecId codec = wire::CodecId::fp32;  // of the delta
    std::uint64_t hash = 0;                     // of `whole`; 0: not its turn
  };
  static void set(Form& form, SharedBytes bytes);
  static std::size_t body_bytes(Reader reader) noexcept {
    return reader.background ? wire::kSegmentBytesMax : wire::kBodyBytesMax;
  }
  static wire::Frame segment(Form& form, wire::FrameHeader header, std::size_t offset, Reader reader);

  std::uint64_t version_ = 0;
  std::vector<ChunkFrames> chunks_;
};

}  // namespace motley::engine

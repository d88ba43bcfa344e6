#pragma once
// The frames that carry one version of the weights. Bytes and checksums are made once and shared by all sessions. One
// thread at a time.

#include <cstdint>
#include <vector>

#include "motley/bytes.h"
#include "motley/layout.h"
#include "wire/frame.h"

namespace motley::engine {

class VersionFrames {
 public:
  explicit VersionFrames(std::size_t chunks) : chunks_(chunks) {}

  void set_version(std::uint64_t version) noexcept { version_ = version; }
  [[nodiscard]] std::uint64_t version() const noexcept { return version_; }
  void set(ChunkId chunk, SharedBytes bytes);
  [[nodiscard]] bool has(ChunkId chunk) const noexcept { return !chunks_[chunk].bytes.empty(); }
  void clear();

  /// Calls send(frame) for every segment. Frames in the same process go whole and without checksum.
  template <class Send>
  void each(ChunkId chunk, wire::FrameHeader header, bool local, bool checksum, Send&& send) {
    header.type = wire::FrameType::weights;
    header.version = version_;
    header.chunk = chunk;
    header.total = static_cast<std::uint32_t>(chunks_[chunk].bytes.size());
    const std::size_t segments = local ? 1 : segments_of(chunk);
    for (std::size_t i = 0; i < segments; ++i) send(segment(chunk, header, i, local, checksum));
  }

 private:
  struct ChunkBytes {
    SharedBytes bytes;
    std::vector<std::uint32_t> checksums;  // by segment; empty until somebody needs them
  };
  [[nodiscard]] std::size_t segments_of(ChunkId chunk) const noexcept;
  wire::Frame segment(ChunkId chunk, wire::FrameHeader header, std::size_t index, bool local, bool checksum);

  std::uint64_t version_ = 0;
  std::vector<ChunkBytes> chunks_;
};

}  // namespace motley::engine

#pragma once
// Puts segments together again: weights by version and chunk, and what a script gives. Segments may come in any order
// and more than once. Chunks that come whole in one frame are kept by reference, others are copied once; a delta makes
// a new chunk of the one in use. One thread at a time.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "codec/delta.h"
#include "motley/bytes.h"
#include "motley/layout.h"
#include "motley/result.h"
#include "wire/frame.h"

namespace motley::engine {

/// Which bytes of a whole are there.
class ByteCover {
 public:
  void add(std::uint64_t offset, std::uint64_t length);
  [[nodiscard]] bool covers(std::uint64_t total) const noexcept {
    return total == 0 || (spans_.size() == 1 && spans_[0].first == 0 && spans_[0].second >= total);
  }

 private:
  std::vector<std::pair<std::uint64_t, std::uint64_t>> spans_;  // [first, last), sorted, not touching
};

/// At most two versions: the one in use and the next.
class WeightsAssembler {
 public:
  /// `set`: the instructions that add deltas; null: the fastest.
  explicit WeightsAssembler(const codec::Kernels* set = nullptr) : set_(set) {}

  void reset(const Layout& layout);
  /// ErrorCode::protocol for sizes that do not fit the layout.
  [[nodiscard]] Status check(const wire::Frame& frame) const;
  /// Whether a segment of `version` was taken before, or would not be taken.
  [[nodiscard]] bool knows(std::uint64_t version) const noexcept;
  enum class Added : std::uint8_t {
    part,
    chunk,    // this made its chunk whole
    whole,    // and its version
    differs,  // the chunk is not what the frame says it comes to
  };
  /// Old versions are ignored, and so are deltas from a version that is not in use; a version that is not whole makes
  /// way for a newer one. ErrorCode::protocol for a delta that no encoder writes. REQUIRES check() passed, and that a
  /// whole version is adopted before a newer one comes.
  Result<Added> add(const wire::Frame& frame);
  /// Tasks compute with `version` from now on; older ones are dropped. REQUIRES it is whole.
  void adopt(std::uint64_t version);
  void forget();
  /// By chunk; empty where it is not whole, or not of the two versions.
  [[nodiscard]] std::vector<SharedBytes> weights(std::uint64_t version) const;
  [[nodiscard]] SharedBytes weights(std::uint64_t version, ChunkId chunk) const;

 private:
  struct Chunk {
    SharedBytes whole;
    MutableBytes filling;
    wire::CodecId codec = wire::CodecId::fp32;  // of what is filling
    ByteCover cover;
    bool done = false;
  };
  struct Version {
    std::uint64_t number = 0;
    std::vector<Chunk> chunks;
    std::size_t missing = 0;
  };
  Version* slot_of(std::uint64_t version);
  [[nodiscard]] const Version* find(std::uint64_t version) const noexcept;
  /// All bytes of a frame's chunk in the form of the frame; empty while some are missing.
  SharedBytes collect(Chunk& chunk, const wire::Frame& frame);

  const codec::Kernels* set_;
  std::vector<motley::Chunk> places_;
  std::array<std::unique_ptr<Version>, 2> slots_;
  std::optional<std::uint64_t> adopted_;
  std::vector<SharedBytes> current_;
  BufferPool pool_;
};

/// A script's files, and what its runs left: they follow a RunSpec.
class BlobAssembler {
 public:
  void reset();
  /// ErrorCode::protocol for sizes beyond wire::kBlobBytesMax or that contradict each other.
  Status add(const wire::Frame& frame);
  /// The RunSpec says the file has `bytes`. ErrorCode::protocol when that is too many or what came has another size.
  Status expect(std::uint64_t bytes);
  /// Once: the file, when all of it is there and its size is known.
  std::optional<SharedBytes> take();

 private:
  std::optional<std::uint64_t> expected_;
  std::optional<std::uint64_t> total_;
  std::shared_ptr<std::vector<std::byte>> bytes_;
  ByteCover cover_;
  bool taken_ = false;
};

}  // namespace motley::engine

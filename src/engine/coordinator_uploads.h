#pragma once
// Payloads of contributions until they are summed. A chunk that came in one frame is kept by reference, one that came
// in segments is put together in a pooled buffer. One thread at a time.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/sum_segment.h"
#include "modes/work/coverage.h"
#include "modes/work/interval_set.h"
#include "motley/bytes.h"
#include "motley/device_server.h"
#include "motley/layout.h"
#include "wire/frame.h"

namespace motley::engine {

class Uploads {
 public:
  explicit Uploads(std::size_t chunks) : chunks_(chunks) {}

  /// False if a segment of this chunk came in another codec.
  [[nodiscard]] bool fits(modes::LeaseId lease, const wire::FrameHeader& header) const;
  /// True when the chunk is whole with this frame; false if bytes are missing, or it was whole before.
  /// REQUIRES a header that fits the layout and what came before.
  bool add(modes::LeaseId lease, const wire::Frame& frame);
  /// Likewise of a segment that was encoded by itself, of a chunk of so many elements.
  bool add_segment(modes::LeaseId sum, const wire::Frame& frame, const SumSegment& segment, std::size_t elements);
  /// The chunk is whole, and not released.
  [[nodiscard]] bool has(modes::LeaseId lease, ChunkId chunk) const noexcept;
  /// As it came. REQUIRES the chunk is whole, not released, and of so many elements.
  [[nodiscard]] codec::Encoded encoded(modes::LeaseId lease, ChunkId chunk, std::size_t elements) const;
  /// The same where a device may have it. REQUIRES the same.
  [[nodiscard]] GradientPart part(modes::LeaseId lease, ChunkId chunk) const;
  /// The chunk of this number is the sum of those of the leases: the first gets it, and the others none of their own.
  /// REQUIRES it is whole, and none of them came whole by itself.
  void share(modes::LeaseId sum, ChunkId chunk, std::span<const modes::LeaseId> leases);
  /// What they shared is gone, and each may come by itself.
  void unshare(ChunkId chunk, std::span<const modes::LeaseId> leases);
  /// Its values are in the sum that the one before it has.
  [[nodiscard]] bool shared(modes::LeaseId lease, ChunkId chunk) const noexcept;
  /// All of that number.
  void forget(modes::LeaseId sum);
  /// Frees a payload; more frames for it are ignored.
  void release(modes::LeaseId lease, ChunkId chunk);
  /// Releases whatever of the lease `coverage` did not accept.
  void abandon(modes::LeaseId lease, const modes::Coverage& coverage);
  /// Frees everything; keeps the tables.
  void clear();

 private:
  enum class State : std::uint8_t { empty, filling, whole, shared, released };
  struct Slot {
    State state = State::empty;
    wire::CodecId codec = wire::CodecId::fp32;
    SharedBytes whole;
    MutableBytes filling;
    modes::IntervalSet received;  // bytes
  };
  struct Upload {
    modes::LeaseId lease = 0;
    std::vector<Slot> slots;
  };
  Upload* find(modes::LeaseId lease) noexcept;
  Upload& make(modes::LeaseId lease);
  [[nodiscard]] const Upload* find(modes::LeaseId lease) const noexcept;
  /// Where segments of it are put together; null: it is whole, or nothing more is wanted.
  Slot* filling(modes::LeaseId lease, const wire::FrameHeader& header);
  /// True when that was the last segment.
  bool filled(Slot& slot, const wire::FrameHeader& header);
  void release(Slot& slot);
  void empty(Slot& slot);

  std::size_t chunks_;
  std::vector<Upload> uploads_;  // the first used_ are in use
  std::size_t used_ = 0;
  BufferPool pool_;
};

}  // namespace motley::engine

#pragma once
// Payloads of contributions until they are summed. A chunk that came in one frame is kept by reference, one that came
// in segments is put together in a pooled buffer. One thread at a time.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

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
  /// The chunk is whole, and not released.
  [[nodiscard]] bool has(modes::LeaseId lease, ChunkId chunk) const noexcept;
  /// As it came. REQUIRES the chunk is whole, not released, and of so many elements.
  [[nodiscard]] codec::Encoded encoded(modes::LeaseId lease, ChunkId chunk, std::size_t elements) const;
  /// The same where a device may have it. REQUIRES the same.
  [[nodiscard]] GradientPart part(modes::LeaseId lease, ChunkId chunk) const;
  /// Frees a payload; more frames for it are ignored.
  void release(modes::LeaseId lease, ChunkId chunk);
  /// Releases whatever of the lease `coverage` did not accept.
  void abandon(modes::LeaseId lease, const modes::Coverage& coverage);
  /// Frees everything; keeps the tables.
  void clear();

 private:
  enum class State : std::uint8_t { empty, filling, whole, released };
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
  void release(Slot& slot);
  void empty(Slot& slot);

  std::size_t chunks_;
  std::vector<Upload> uploads_;  // the first used_ are in use
  std::size_t used_ = 0;
  BufferPool pool_;
};

}  // namespace motley::engine

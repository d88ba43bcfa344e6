#pragma once
// The chunks of the open pass, from their last contribution to the next version: summed, clipped, updated. The
// arithmetic is the driver's, who answers. One thread at a time.

#include <cstdint>

#include "modes/event.h"
#include "modes/run.h"
#include "modes/work/lease_ends.h"
#include "modes/work/pass_work.h"

namespace motley::modes {

class Chunks {
 public:
  /// REQUIRES all outlive this.
  Chunks(Run& run, PassWork& work, LeaseEnds& ends) : run_(run), work_(work), ends_(ends) {}

  /// Nothing of the pass is summed yet.
  void begin() noexcept { reduced_ = applied_ = 0; }
  void reduce_if_ready(ChunkId chunk);
  void reduce_all_ready();
  void on(const ChunkReduced& event);
  void on(const Clipped& event);
  void on(const ChunkApplied& event, Time now);
  /// Chunks that carry the next version.
  [[nodiscard]] std::uint32_t applied() const noexcept { return applied_; }

 private:
  Run& run_;
  PassWork& work_;
  LeaseEnds& ends_;
  std::uint32_t reduced_ = 0, applied_ = 0;
};

}  // namespace motley::modes

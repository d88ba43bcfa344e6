#pragma once
// The chunks of the open pass, from their last contribution to the next version: summed, clipped, updated, which the
// driver does. One thread at a time.

#include <cstdint>
#include <vector>

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
  void begin() noexcept {
    ready_.clear();
    summed_ = updated_ = 0;
  }
  /// All that is needed of the chunk is there, maybe.
  void look(ChunkId chunk);
  void look_at_all();
  /// After each event: what is done with the chunks that have become ready, and the end of the step.
  void settle(Time now);
  /// Chunks that carry the next version.
  [[nodiscard]] std::uint32_t updated() const noexcept { return updated_; }

 private:
  Run& run_;
  PassWork& work_;
  LeaseEnds& ends_;
  std::vector<ChunkId> ready_;  // to be summed after this event
  std::uint32_t summed_ = 0, updated_ = 0;
};

}  // namespace motley::modes

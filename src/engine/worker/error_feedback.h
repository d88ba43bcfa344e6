#pragma once
// Error feedback: what a lossy codec leaves out of a worker's contribution goes into its next one. Until the
// coordinator says that a chunk counts, what was left out before it stays: if it does not count, the next contribution
// starts from there. In units of the gradient sum, so that it outlives changes of share and membership. One thread at a
// time.

#include <cstdint>
#include <utility>
#include <vector>

#include "motley/bytes.h"
#include "motley/layout.h"
#include "wire/messages.h"

namespace motley::engine {

class ErrorFeedback {
 public:
  /// A coordinator that was started again knows nothing of what was sent before: all is zero, as with another run.
  void admitted(std::uint64_t run, std::uint32_t incarnation);
  /// What goes on the wire for a chunk of `lease`.
  SharedBytes encode(const wire::Grant& lease, ChunkId chunk, std::span<const float> gradient);
  void taken(const wire::Taken& taken);
  /// Of the newest contribution: ‖what was left out‖ / ‖what was to be sent‖, over the chunks sent so far; 0 without.
  [[nodiscard]] double residual_ratio() const;
  /// Empty: zero.
  [[nodiscard]] std::span<const float> residual(ChunkId chunk) const;

 private:
  struct Slot {
    std::vector<float> residual, left;  // before and after what was sent
    bool sent = false;
  };

  void forget_sent();

  std::vector<Slot> slots_;  // by chunk
  std::uint64_t lease_ = 0;  // whose chunks were sent
  double left2_ = 0, gradient2_ = 0;
  std::pair<std::uint64_t, std::uint32_t> coordinator_{};
  BufferPool pool_;
};

}  // namespace motley::engine

#pragma once
// Error feedback: what a lossy codec leaves out of a worker's contribution goes into its next one. Until the
// coordinator says that a chunk counts, what was left out before it stays. Two contributions of steps to come may be
// under way: the second one goes out as if the first one counts, and is set right where that does not. In units of the
// gradient sum, so that it outlives changes of share and membership. One thread at a time.

#include <array>
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
  /// What was sent over the last channel does not count unless that is said before the next contribution.
  void connected() noexcept;
  /// What goes on the wire for a chunk of `lease`.
  SharedBytes encode(const wire::Grant& lease, ChunkId chunk, std::span<const float> gradient);
  void taken(const wire::Taken& taken);
  /// Of the newest contribution: ‖what was left out‖ / ‖what was to be sent‖, over the chunks sent so far; 0 without.
  [[nodiscard]] double residual_ratio() const;
  /// Empty: zero.
  [[nodiscard]] std::span<const float> residual(ChunkId chunk) const;

 private:
  struct Sent {
    std::uint64_t lease = 0;  // 0: none
    std::uint64_t pass = 0;
    bool before = false;      // over an earlier channel
    std::vector<float> left;  // the residual after it, if it counts and what was sent before it does
  };
  struct Slot {
    std::vector<float> residual;  // before what was sent
    std::array<Sent, 2> sent;     // the older one first
  };

  static void resolve(Slot& slot, std::size_t which, bool counts);
  static bool may_still_count(const Sent& sent, const wire::Grant& next);

  std::vector<Slot> slots_;  // by chunk
  std::uint64_t lease_ = 0;  // whose chunks were sent last
  double left2_ = 0, gradient2_ = 0;
  std::pair<std::uint64_t, std::uint32_t> coordinator_{};
  BufferPool pool_;
};

}  // namespace motley::engine

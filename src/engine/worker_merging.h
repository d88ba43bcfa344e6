#pragma once
// A worker's part in a sum of contributions: its own chunks wait for those of the worker behind it, are added to them
// segment by segment, and what that comes to goes on, encoded as its own would be. Its own are kept until the
// coordinator has what it needs, in case that it is to send them itself. Nothing from the other worker is believed. One
// thread at a time.

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "base/time.h"
#include "engine/error_feedback.h"
#include "engine/sum_segment.h"
#include "motley/bytes.h"
#include "motley/layout.h"
#include "wire/frame.h"
#include "wire/messages.h"

namespace motley::engine {

class Merging {
 public:
  // Nothing came that is waited for: so long at least, and such a part of what its own took, since shares that are to
  // end at the same time do not quite; and for each hop behind it what a segment takes twice, as weights, by which
  // those begin, come later to who is behind, and numbers come that way back.
  static constexpr Duration kPatience = std::chrono::seconds(1);
  static constexpr int kOfItsOwnTime = 4;
  static constexpr int kWaysOfAHop = 2;

  /// What is to go on, under a header without a session.
  struct Outgoing {
    std::uint64_t to = 0;  // a source; 0: the coordinator
    wire::Frame frame;
  };
  struct Kept {
    wire::Grant lease;
    std::vector<std::pair<ChunkId, SharedBytes>> chunks;
  };

  /// REQUIRES it outlives this.
  explicit Merging(ErrorFeedback& feedback) : feedback_(feedback) {}

  /// A new session.
  void reset();
  void prepare(const Layout& layout);
  /// `hop`: how much later a segment may be for each worker that hands it on.
  void begin(const wire::Merge& merge, Duration hop, Time now);
  /// Chunks of this lease go through add().
  [[nodiscard]] bool is_of(std::uint64_t lease) const noexcept { return merge_ && merge_->lease == lease; }
  /// Of its own contribution. REQUIRES is_of() that lease, and a chunk of the layout.
  void add(const wire::Grant& lease, ChunkId chunk, const SharedBytes& gradient, Time now);
  /// False: it is not what the guest was to send.
  [[nodiscard]] bool add_from_guest(std::uint64_t guest, const wire::Frame& frame, Time now);
  [[nodiscard]] std::optional<Outgoing> next();
  /// Nothing came that is waited for: give_up(). REQUIRES called every 100 ms or so.
  [[nodiscard]] bool overdue(Time now);
  /// What to say; once for each contribution.
  [[nodiscard]] std::optional<wire::Unmerge> give_up(bool wrong);
  /// What the coordinator lacks is to go to it, as far as it is there; what is not yet goes there by itself.
  [[nodiscard]] Kept end(const wire::Unmerge& unmerge);
  /// Nothing more is needed of the lease, or of the pass.
  void taken(std::uint64_t lease);
  void closed(std::uint64_t pass);

 private:
  struct Slot {
    SharedBytes own;
    std::vector<wire::Frame> came;  // before its own
    std::size_t came_elements = 0;  // also of what went on
  };
  [[nodiscard]] bool fits(const wire::FrameHeader& header, std::size_t body) const;
  /// It came for what is summed now. False: as add_from_guest().
  [[nodiscard]] bool take(const wire::Frame& frame);
  [[nodiscard]] bool is_ours(const wire::FrameHeader& header) const noexcept;
  [[nodiscard]] wire::FrameHeader header_of(ChunkId chunk) const;
  void pass_on(const wire::Frame& frame);
  void send(ChunkId chunk, const SumSegment& segment, SharedBytes sum);
  [[nodiscard]] bool waits() const;
  void drop_early();

  ErrorFeedback& feedback_;
  std::optional<Layout> layout_;
  std::optional<wire::Merge> merge_;
  std::optional<wire::Grant> lease_;  // of it, once a chunk of it is there
  std::vector<Slot> slots_;           // by chunk
  std::deque<Outgoing> out_;
  std::deque<std::pair<std::uint64_t, wire::Frame>> early_;  // by guest
  std::size_t early_bytes_ = 0;
  std::uint64_t over_ = 0;  // the newest pass in which nothing is to be summed any more
  Time newest_{}, looked_{}, begun_{};
  Duration patience_ = kPatience, hops_{};
  bool gave_up_ = false;
  BufferPool pool_;
};

}  // namespace motley::engine

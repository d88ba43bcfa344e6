#pragma once
// What workers hold of the weights, and how they get it: this version whole, the next one chunk by chunk as it is made,
// or in fewer bits what a step changed. One thread at a time.

#include <cstdint>
#include <optional>

#include "engine/head/performance.h"
#include "engine/head/sessions.h"
#include "engine/head/weights.h"
#include "fleet/roster.h"
#include "ps/server.h"

namespace motley::engine {

class WeightsSender {
 public:
  /// `codec`: of what a step changes; empty: as the links need it. REQUIRES the others outlive this.
  WeightsSender(const ps::Server& server, std::optional<wire::CodecId> codec, Sessions& sessions,
                const fleet::Roster& members, const MeasuredPerformance& performance);

  /// All chunks of this version. `urgent`: ahead of what else goes in the background. `timed`: Synced will tell how
  /// long that took.
  void send(Session& to, bool urgent, bool timed, Time now);
  /// The chunks of the next version that are made already.
  void send_next(const Session& to);
  /// A chunk of the next version, to all that stream.
  void publish(ChunkId chunk, const SharedBytes& exact);
  /// Every chunk of the next version was published, and it is the current one now.
  void advance();
  /// Likewise where a worker made the steps by itself, and nothing was published.
  void adopt(const ps::Snapshot& after);

  [[nodiscard]] const SharedBytes& held(ChunkId chunk) const { return current_.held(chunk); }
  /// What workers hold of this version is what the server has.
  [[nodiscard]] bool held_exactly() const;

 private:
  /// Returns how many bytes of bodies that took.
  std::size_t send_chunk(const Session& to, VersionFrames& frames, ChunkId chunk, Lane lane);
  /// The next version of a chunk, for those who hold this one.
  void make_next(ChunkId chunk, const SharedBytes& exact);
  [[nodiscard]] wire::CodecId codec() const;
  [[nodiscard]] std::size_t chunks() const noexcept { return server_.layout().chunks().size(); }

  const ps::Server& server_;
  std::optional<wire::CodecId> codec_;
  Sessions& sessions_;
  const fleet::Roster& members_;
  const MeasuredPerformance& performance_;
  VersionFrames current_, next_;  // whole; growing while the step closes
  BufferPool pool_;               // of what deltas are and lead to
};

}  // namespace motley::engine

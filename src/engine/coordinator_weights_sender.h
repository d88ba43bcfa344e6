#pragma once
// What workers hold of the weights, and how they get it: this version whole, the next one chunk by chunk as it is made,
// or in fewer bits what a step changed. One thread at a time.

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/coordinator_pace.h"
#include "engine/coordinator_sessions.h"
#include "engine/coordinator_weights.h"
#include "fleet/roster.h"
#include "ps/server.h"

namespace motley::engine {

class WeightsSender {
 public:
  /// REQUIRES all but `options` outlive this.
  WeightsSender(const ps::Server& server, const CoordinatorOptions& options, Sessions& sessions,
                const fleet::Roster& members, const MeasuredPace& pace);

  /// All chunks of this version. `urgent`: ahead of what else goes in the background. `timed`: Synced will tell how
  /// long that took.
  void send(Session& to, bool urgent, bool timed, Time now);
  /// The chunks of the next version that are made already.
  void send_next(const Session& to);
  /// A chunk of the next version, to all that stream.
  void publish(ChunkId chunk, const SharedBytes& exact);
  /// It follows nobody now: the bytes of what it was sent by its hash, but for chunks `has` of `version` and all of
  /// those before.
  void send_again(Session& to, std::uint64_t version, const std::vector<std::uint8_t>& has);
  /// Every chunk of the next version was published, and it is the current one now.
  void advance();
  /// Likewise where a worker made the steps by itself, and nothing was published.
  void adopt(const ps::Snapshot& after);

  [[nodiscard]] std::uint64_t version() const noexcept { return current_.version(); }
  [[nodiscard]] const SharedBytes& held(ChunkId chunk) const { return current_.held(chunk); }
  /// What workers hold of this version is what the server has.
  [[nodiscard]] bool held_exactly() const;

 private:
  /// Returns how many bytes of bodies that took.
  std::size_t send_chunk(const Session& to, VersionFrames& frames, ChunkId chunk, Lane lane) {
    return send_chunk(to, frames, chunk, lane, reader(to, frames, lane));
  }
  std::size_t send_chunk(const Session& to, VersionFrames& frames, ChunkId chunk, Lane lane,
                         const VersionFrames::Reader& reader);
  [[nodiscard]] VersionFrames::Reader reader(const Session& to, const VersionFrames& frames, Lane lane) const;
  /// It gets this chunk of the next version from whom it follows.
  [[nodiscard]] bool comes_by_hash(const Session& to, ChunkId chunk) const;
  [[nodiscard]] bool holds_current(const Session& session) const {
    return !session.gone && session.holds == current_.version();
  }
  /// The next version of a chunk, for those who hold this one.
  void make_next(ChunkId chunk, const SharedBytes& exact);
  [[nodiscard]] wire::CodecId codec() const;
  [[nodiscard]] std::size_t chunks() const noexcept { return server_.layout().chunks().size(); }

  const ps::Server& server_;
  std::optional<wire::CodecId> codec_;  // of what a step changes; empty: as the links need it
  std::size_t chain_bytes_min_;
  Sessions& sessions_;
  const fleet::Roster& members_;
  const MeasuredPace& pace_;
  VersionFrames current_, next_;  // whole; growing while the step closes
  BufferPool pool_;               // of what deltas are and lead to
};

}  // namespace motley::engine

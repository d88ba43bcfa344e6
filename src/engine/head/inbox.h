#pragma once
// From frames of workers to events of the machine. What breaks the protocol closes the session; what is merely late is
// dropped. One thread at a time.

#include <optional>
#include <string>

#include "cluster/coordinator_machine.h"
#include "engine/head/bearing.h"
#include "engine/head/coordinator.h"
#include "engine/head/delegator.h"
#include "engine/head/device_steps.h"
#include "engine/head/evaluations.h"
#include "engine/head/performance.h"
#include "engine/head/sessions.h"
#include "engine/head/sketches.h"
#include "engine/head/uploads.h"
#include "engine/probes.h"
#include "ps/server.h"

namespace motley::engine {

/// Something was heard of it lately.
bool lives(const fleet::Member& member, const Timeouts& timeouts, Time now) noexcept;

class Inbox {
 public:
  /// What it works on, all of which outlives it.
  struct Parts {
    const CoordinatorOptions& options;
    const ps::Server& server;
    const DeviceSteps& on_device;
    const cluster::CoordinatorMachine& machine;
    Sessions& sessions;
    KnownWorkers& workers;
    MeasuredPerformance& performance;
    Uploads& uploads;
    Sketches& sketches;
    Probes& probes;
    Evaluations& evaluations;
    CoordinatorOutput& output;
  };
  /// `pass_share`: of the bytes of a version, what a pass moves in one direction.
  Inbox(const Parts& parts, double pass_share, Feed feed)
      : parts_(parts),
        pass_share_(pass_share),
        feed_(std::move(feed)),
        pointing_(pointing_chunk(parts.server.layout())) {}

  void on_frame(Session& session, const wire::Frame& frame, Time now);

 private:
  void on_message(Session& session, const wire::Message& message);
  void on_gradient(Session& session, const wire::Frame& frame);
  /// Claims of the pass that a chunk of the lease differs from, by bit.
  [[nodiscard]] std::uint32_t unlike(const modes::Lease& lease, ChunkId chunk) const;
  /// Which way the gradient points, where that chunk tells.
  [[nodiscard]] std::optional<modes::Bearing> bearing(ChunkId chunk, const codec::Encoded& values) const;
  void on_ready(Session& session, const wire::Ready& ready);
  void on_synced(Session& session, const wire::Synced& synced);
  void on_refresh(Session& session, const wire::Refresh& refresh);
  void on_begin(Session& session, const wire::Begin& begin);
  void on_finish(Session& session, const wire::Finish& finish);
  void on_failed(Session& session, const wire::Failed& failure);
  /// What it says of time, as far as that can be.
  void measure(Session& session, const wire::Finish& finish, const Asked::Lease& asked);
  /// A line on the screen because of what a session says: so many at the most.
  void warn(Session& session, std::string text);
  void on_bye(Session& session, const wire::Bye& bye);
  [[nodiscard]] std::optional<wire::Bye> refusal(const wire::Ready& ready) const;
  void name_worker(Session& session);
  [[nodiscard]] const modes::Lease* live_lease(const Session& session, std::uint64_t pass, modes::LeaseId lease) const;
  /// What it evaluates beside the training.
  [[nodiscard]] bool is_background(const Session& session, modes::LeaseId lease) const;
  void violation(Session& session, std::string expected, std::string found);
  void end_session(Session& session, wire::Bye bye, std::string why);

  Parts parts_;
  double pass_share_;
  Feed feed_;
  ChunkId pointing_;
  Time now_{};
};

}  // namespace motley::engine

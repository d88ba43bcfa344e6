#pragma once
// The gradient of a worker on its way to the coordinator: encoded as the lease says, cut into frames, and timed, so
// that the coordinator learns what the link carries. One thread at a time.

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/worker/error_feedback.h"
#include "engine/worker/worker.h"
#include "motley/bytes.h"
#include "motley/layout.h"
#include "plan/link_model.h"
#include "wire/frame.h"
#include "wire/messages.h"

namespace motley::engine {

class GradientSender {
 public:
  /// REQUIRES both outlive this.
  GradientSender(WorkerOutput& output, ErrorFeedback& feedback) : output_(output), feedback_(feedback) {}

  /// A new channel: what went over the last one says nothing of it.
  void connected();
  /// A chunk of the contribution, under a header with the run and the fence.
  void send(const wire::Grant& lease, wire::FrameHeader header, const Chunk& place, const SharedBytes& gradient,
            bool checksums, Time now);
  /// The coordinator has what it needs of a lease.
  void taken(const wire::Taken& taken, Time now);
  /// Of the contribution that was taken last, once.
  void report(wire::Finish& finish);

 private:
  WorkerOutput& output_;
  ErrorFeedback& feedback_;
  std::uint64_t lease_ = 0;  // the newest contribution; 0: none, or it was taken
  std::vector<plan::Departure> departures_;
  struct Sent {
    std::uint64_t lease = 0;
    plan::Transfer transfer;
  };
  std::optional<Sent> sent_;  // the one that was taken last, until the next Finish tells
};

}  // namespace motley::engine

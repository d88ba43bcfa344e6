#pragma once
// From the machine's actions to what workers and the display are told. One thread at a time.

#include <cstdint>
#include <string>

#include "engine/head/coordinator.h"
#include "engine/head/performance.h"
#include "engine/head/sessions.h"
#include "engine/head/state.h"
#include "engine/head/weights_sender.h"
#include "fleet/roster.h"
#include "modes/action.h"

namespace motley::engine {

class Outbox {
 public:
  /// What it works on, all of which outlives it.
  struct Parts {
    const CoordinatorOptions& options;
    const fleet::Roster& roster;
    const MeasuredPerformance& performance;
    Sessions& sessions;
    KnownWorkers& workers;
    StateSender& state;
    WeightsSender& weights;
    CoordinatorOutput& output;
  };
  explicit Outbox(const Parts& parts) : parts_(parts) {}

  /// The run, and the files that it needs.
  void send_spec(const Session& session);
  void admit(const modes::Action& action);
  void send_weights(const modes::Action& action, Time now);
  /// What send_weights() put off, where the queue is empty now.
  void send_due_weights(Time now);
  void send_pass(const modes::Action& action);
  void send_grant(const modes::Action& action, Time now);
  void send_trim(const modes::Action& action);
  void send_cancel(const modes::Action& action);
  void send_taken(const modes::Action& action);
  void send_calibration(const modes::Action& action, Time now);
  void send_probe(const modes::Action& action, Time now);
  void send_background_evaluation(const modes::Action& action, Time now);
  void send_heartbeat(const modes::Action& action, Time now);
  /// To all that stream: the pass is closed, and this version is the newest.
  void close_pass(const modes::Action& action, std::uint64_t version);
  /// `failed`: the run is over because it cannot go on.
  void close_session(const modes::Action& action, bool failed);
  void tell(const modes::Action& action, Membership event);

 private:
  /// Of a grant, or of what was granted: what may come, for chunks of large tensors. With feedback: the first lease of
  /// a pass only, since the gradient of a range that is granted again must not depend on who computes it.
  [[nodiscard]] wire::CodecId codec_of(const modes::Action& lease) const;
  [[nodiscard]] bool has_feedback(const modes::Action& lease) const;
  /// Sends it, and remembers when.
  void ask(const modes::Action& action, Time now, const wire::Grant& grant);
  void report_closed(const Session& session, const modes::Action& action, const std::string& reason);

  Parts parts_;
};

}  // namespace motley::engine

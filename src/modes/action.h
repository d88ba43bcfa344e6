#pragma once
// What the coordinator's machine wants done, each with its reason. Actions carry what is needed to do them: whoever
// does them asks nothing back. They are small values, and the list is reused, so a steady step allocates nothing.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "modes/work/lease.h"
#include "modes/work/pass.h"

namespace motley::modes {

enum class ActionKind : std::uint8_t {
  admit,           // session, worker, fence: send Admitted
  send_weights,    // session: send every chunk at the current version; `urgent`: ahead of other background traffic
  send_next,       // session: send the chunks of the next version that are made already
  close_session,   // session, worker: send Bye and forget it; the reason says why
  open_pass,       // session: send PassOpened of the open pass
  grant,           // session, lease, range, ceiling: of which the range is the start, or the end
  trim,            // session, lease, range: what is wanted of it now; number
  calibrate,       // session, lease, range, version: the result is dropped, the time counts; answer Calibrated
  probe,           // session, worker, lease: beside all else; answer Probed
  compare_probes,  // worker, number: the worker it is compared with; answer ProbesCompared
  park,            // session, worker: tell the user
  take_in,         // session, worker: a parked one takes part again; tell the user
  evaluate_in_background,  // session, lease, range: beside the training; answer BackgroundEvaluated
  compare_background,      // worker: what it evaluated, and all others; answer BackgroundCompared
  cancel_background,       // session, lease
  cancel,                  // session, lease
  taken,                   // session, lease: nothing more is needed of it; what counts of it is known
  measured,                // worker, lease, range, elapsed: a lease from grant to its last byte
  late,          // session, worker, lease, range, elapsed: ends unfinished, overdue; number: samples known to be done
  sketch,        // lease: what is here of it is to be compared with what another worker comes to
  abandon,       // lease: free its payloads that were not accepted
  release,       // lease, chunk: free this payload, it is not needed
  reduce,        // chunk: sum its pieces
  finish_chunk,  // chunk: likewise; then update it and send it to everybody who streams
  finish_all,    // all are summed: clip, update and send them, from `chunk` on
  close_step,    // every chunk is updated; answer PassFinished
  close_evaluation,  // every position is counted; answer PassFinished
  delegate,   // session, worker, lease, range: steps to make without asking; answer DelegatedStep, DelegationEnded
  cut,        // session, lease: end what was delegated after the step it is at
  pause,      // version: `urgent`: of a step, else of an eval point; answer Resumed when it may go on
  heartbeat,  // session
  warn,       // tell the user the reason
  diverged,   // the run ends with an error; range says where
  finished,   // the run is over
};

enum class ReasonCode : std::uint8_t {
  none,
  share,           // a: samples of b
  moved,           // worker: whose they were; a: samples
  lost_lease,      // worker: whose lease it was
  cut_short,       // worker did less than granted
  overdue,         // worker; a: milliseconds since the grant
  poisoned,        // worker; a: first position, b: count
  poisoned_twice,  // worker; a: first position, b: count
  unlikely,        // worker; a: first position, b: count
  verified,        // worker, who is to be compared with another; a: first position, b: count
  differs,         // worker; a: first position, b: count
  otherwise,       // worker
  failed_lease,    // worker
  handed_back,     // worker; a: leases
  overlap,         // worker
  wrong_weight,    // worker
  strike,          // worker; a: strikes, b: of
  excluded,        // worker; a: strikes
  silent,          // worker; a: milliseconds
  slow_to_load,    // a: seconds
  makes_room,      // a: seconds
  channel_closed,  // worker
  left,            // worker
  yielded,         // worker
  full,            // a: workers
  run_over,
  stopped,
  joined,
  behind,        // worker; a: its version, b: the current one
  does_not_pay,  // worker; a: least milliseconds of a step with it, b: milliseconds without it
  in_vain,       // worker
  pays,          // worker
  compared,      // worker: who is alone for a moment
  nobody_else,   // worker
  alone,         // worker; a: steps
  evaluation,
  background,  // worker
  paused,
  all_covered,
  covered_elsewhere,
  woke,  // a: milliseconds
};

struct Reason {
  ReasonCode code = ReasonCode::none;
  WorkerId worker = 0;
  std::uint64_t a = 0, b = 0;
  bool operator==(const Reason&) const = default;
};

/// As reasons carry a time, which is not negative.
[[nodiscard]] inline std::uint64_t whole_milliseconds(Duration d) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, std::chrono::ceil<std::chrono::milliseconds>(d).count()));
}

struct Action {
  ActionKind kind = ActionKind::warn;
  SessionId session = 0;
  WorkerId worker = 0;
  LeaseId lease = 0;
  Interval range{}, ceiling{};
  ChunkId chunk = 0;
  PassId pass{};                     // the open one; of what is beside it, its own
  PassRange positions{};             // of that pass
  bool first_of_pass = false;        // grant, taken: the first lease of its worker in the pass, and not withheld
  std::vector<ChunkId> discarded{};  // taken, of such a lease: chunks of it that do not count
  std::uint64_t fence = 0;
  std::uint64_t version = 0;
  std::uint64_t number = 0;
  Duration elapsed{};
  bool urgent = false;
  std::uint64_t local_steps = 0;   // grant: of a round
  std::uint64_t overlapped = 0;    // likewise: of them, before the weights of the round are there
  std::vector<StepRange> spans{};  // likewise: its positions, where they are not just the range
  Reason reason{};
};

using Actions = std::vector<Action>;

/// The name of a worker, for sentences.
using NameOf = std::function<std::string(WorkerId)>;

/// One sentence without a full stop.
std::string sentence(const Reason& reason, const NameOf& name);

}  // namespace motley::modes

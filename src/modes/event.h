#pragma once
// What the coordinator's machine is told. Bytes never come here: the driver keeps payloads and speaks of chunks.

#include <cstdint>
#include <optional>
#include <variant>

#include "modes/work/lease.h"

namespace motley::modes {

struct Started {};
struct Ticked {};
/// `final`: the run is not to be resumed, so its workers need not come back.
struct StopAsked {
  bool final = false;
};

struct SessionOpened {
  SessionId session = 0;
  bool local = false;  // same process
};
/// Its model and data were compared and are the same.
struct WorkerReady {
  SessionId session = 0;
  WorkerId worker = 0;
  std::uint64_t numbers = 0;  // Member's, and
  bool watched = false;
};
struct WorkerSynced {
  SessionId session = 0;
  std::uint64_t version = 0;
};
struct RefreshWanted {
  SessionId session = 0;
  bool differs = false;  // it holds other weights than it should
};
struct LeaseBegun {
  SessionId session = 0;
  LeaseId lease = 0;
  Interval range{};
  double weight = 0, loss_sum = 0;
  std::uint64_t overlapped = 0;  // of a round's steps, as it says: made before the weights of the round were used
};
/// All bytes of one chunk of a contribution are here; `largest` is infinite where an element is not finite. REQUIRES
/// no earlier ChunkArrived for the same (lease, chunk).
struct ChunkArrived {
  SessionId session = 0;
  LeaseId lease = 0;
  ChunkId chunk = 0;
  Largest largest{};
  std::uint32_t unlike = 0;          // claims of the pass that it differs from, by bit
  std::optional<Bearing> bearing{};  // of the chunk that tells which way the gradient points
  bool lossy = false;                // then: in a codec that leaves so much out that it is sent later
};
struct LeaseProgress {
  SessionId session = 0;
  LeaseId lease = 0;
  std::uint64_t done = 0;
  std::uint64_t limit = 0, trim = 0;  // the answer to that Trim; 0: none
};
struct LeaseFinished {
  SessionId session = 0;
  LeaseId lease = 0;
  std::uint64_t count = 0;
  double weight = 0, loss_sum = 0;
  std::uint64_t correct = 0;
};
/// A calibration is done; its time was recorded with the driver's PerformanceModel. `failed`: it could not be computed.
struct Calibrated {
  SessionId session = 0;
  LeaseId lease = 0;
  bool failed = false;
};
/// A probe is over. `whole`: the driver has what came out; else it says nothing of the device.
struct Probed {
  SessionId session = 0;
  LeaseId lease = 0;
  bool whole = false;
};
enum class ProbeVerdict : std::uint8_t {
  alike,  // as far as one who trains need care
  otherwise,
  of_other_states,  // of the loss: it says nothing
};
/// The driver's answer to compare_probes.
struct ProbesCompared {
  WorkerId worker = 0, reference = 0;
  ProbeVerdict verdict = ProbeVerdict::alike;
};
struct LeaseFailed {
  SessionId session = 0;
  LeaseId lease = 0;
};
/// Of a worker that evaluates beside the training. `whole`: the result is there; else it was given up.
struct BackgroundEvaluated {
  SessionId session = 0;
  LeaseId lease = 0;
  bool whole = false;
};
/// The driver's answer to compare_background.
struct BackgroundCompared {
  WorkerId worker = 0;
  bool alike = false;
};
struct WorkerYields {
  SessionId session = 0;
};
struct SessionEnded {  // the channel is gone, or the worker said Bye
  SessionId session = 0;
  bool left = false;  // on its own wish
};

/// A step of what was delegated: the driver holds its result.
struct DelegatedStep {
  SessionId session = 0;
  LeaseId lease = 0;
};
/// `failed`: before it was at its end, and not because it was cut.
struct DelegationEnded {
  SessionId session = 0;
  LeaseId lease = 0;
  bool failed = false;
};

/// Of the pause at this version.
struct Resumed {
  std::uint64_t version = 0;
};

/// The driver's answer to close_step and close_evaluation.
struct PassFinished {};

using Event = std::variant<Started, Ticked, StopAsked, SessionOpened, WorkerReady, WorkerSynced, RefreshWanted,
                           LeaseBegun, ChunkArrived, LeaseProgress, LeaseFinished, Calibrated, Probed, ProbesCompared,
                           LeaseFailed, BackgroundEvaluated, BackgroundCompared, WorkerYields, SessionEnded,
                           DelegatedStep, DelegationEnded, Resumed, PassFinished>;

}  // namespace motley::modes

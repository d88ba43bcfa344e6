#pragma once
// The coordinator without threads, sockets, clock or files: cluster::CoordinatorMachine (who computes what), ps::Server
// (arithmetic) and the frames between them and the workers. runtime/ drives it with real connections, sim/ with virtual
// ones. One thread at a time. Time is handed in and never goes back.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/batch_plan.h"
#include "base/time.h"
#include "engine/link.h"
#include "engine/local/delegated_steps.h"
#include "fleet/member.h"
#include "modes/pauses.h"
#include "modes/verify.h"
#include "motley/bytes.h"
#include "motley/result.h"
#include "motley/task.h"
#include "plan/advice.h"
#include "plan/codec_cost.h"
#include "ps/server.h"
#include "wire/frame.h"
#include "wire/messages.h"

namespace motley::engine {

using fleet::SessionId;

struct CoordinatorOptions {
  std::uint64_t run = 0;
  std::uint32_t incarnation = 1;
  std::uint64_t seed = 0;
  std::uint64_t train_samples = 0;
  std::uint64_t test_samples = 0;  // 0: no evaluation
  std::uint64_t global_batch = 0;
  std::vector<BatchChange> batch_changes;  // made before this process
  // A step is a round of so many local steps of `local_batch` samples, global_batch that of the round, and `server` has
  // the optimizer that acts on what rounds come to; 0: it is not.
  std::uint64_t local_steps = 0, local_batch = 0;
  bool overlap = false;                   // of rounds: the next one begins while this one's results travel
  bool rate_by_workers = false;           // of rounds: ps::outer_rate() of those who contributed
  std::vector<Owed> owed;                 // by rounds before this process
  std::uint64_t steps = 0;                // stop at this version
  std::uint64_t epochs = 0;               // instead, where not 0: after so many
  std::uint64_t grain = 1;                // ranges start at multiples of this
  bool rates_follow_evaluations = false;  // see CoordinatorOutput::rates_after()
  std::uint64_t evaluate_every = 0;       // steps; 0: at the end of each epoch. Always at the end of the run
  std::uint64_t min_workers = 1;          // wait for so many before the first step of this process
  modes::Verify verify{};
  std::vector<double> shares;  // fixed shares in order of admission; empty: by measured speed
  std::string config;          // RunSpec
  SharedBytes script_files;    // for sessions with the feature kFetch
  std::string script_sha256;
  std::string train_fingerprint;
  std::string test_fingerprint;
  std::string script{};  // Ready
  modes::Pauses pauses = modes::Pauses::never;
  bool pause_owed = false;  // where the first version of this process is an eval point: nobody resumed it there before
  bool resumable = true;    // workers of a run that was stopped are told to come back
  LossState state{};        // what the loss gets at first
  bool checksums = true;    // body checksums on frames to workers of other machines
  // From workers of other processes; to them, of what a step changes. Empty: as their links need it.
  std::optional<wire::CodecId> gradients = wire::CodecId::fp32, weights = wire::CodecId::fp32;
  plan::EndCost
      head_cost{};  // what numbers on the wire cost the coordinator's own machine, where one of these is empty
  Timeouts timeouts;
};

/// Parked is who is too slow for now, excluded who was struck out.
enum class Membership : std::uint8_t { joined, left, lost, excluded, readmitted, refused, parked };

struct WorkerChange {
  SessionId session = 0;
  std::uint64_t worker = 0;
  std::string name, machine, device, description;
  Membership event = Membership::joined;
  std::string reason;
};

struct WorkerStep {  // one worker's part in a step
  std::uint64_t worker = 0;
  std::string name;
  std::uint64_t samples = 0;
  double compute_seconds = 0, wait_seconds = 0;
  double finish_seconds = 0;     // from the grant of its first lease to the last byte of its contribution
  std::uint64_t overlapped = 0;  // of its steps in a round: made before the weights of the round were used
};

struct CommittedRange {
  std::uint64_t first = 0, count = 0;
  std::string worker;
};

/// Positions of an earlier round.
struct CommittedLate {
  std::uint64_t step = 0;
  CommittedRange range;
};

/// How much the gradients of samples differ, as far as the steps so far tell.
struct Noise {
  std::uint64_t records = 0;           // steps that had several contributions to compare
  std::optional<double> scale;         // the noise scale, in samples
  std::optional<double> useful_batch;  // the most progress a second with the workers that share the steps
};

struct StepClosed {
  std::uint64_t step = 0;  // the version the gradients were computed at
  std::uint64_t epoch = 0;
  std::uint64_t samples = 0;
  double weight = 0, loss_sum = 0;  // loss = loss_sum / weight
  double gradient_norm = 0;         // before clipping; 0 without clipping
  double learning_rate = 0;         // of the first group
  Noise noise;
  std::uint64_t global_batch = 0;
  Duration duration{};                 // from the opening of the pass
  std::optional<Time> closed{};        // as the event that closed it was handed in; none: made by one alone
  std::uint64_t verified = 0;          // samples that were computed once more, to compare workers
  std::vector<CommittedRange> ranges;  // in order of positions; they tile the pass exactly, but for a round's
  std::vector<CommittedLate> late{};   // of a round: of those before it
  std::vector<Owed> owed{};            // likewise: by all rounds so far
  std::optional<double> drift{};       // likewise: StepNorms::cosine()
  std::vector<WorkerStep> workers;
};

/// How a paused run goes on.
struct Resume {
  std::uint64_t version = 0;
  std::optional<std::vector<double>> rates{};  // learning rates by group from now on
  std::optional<SharedBytes> state{};          // what the loss gets from now on
  std::vector<BatchChange> batches{};          // how steps from `version` on are cut, in order, behind what is known
};

/// What the time models say of steps to come.
struct Planned {
  std::uint64_t global_batch = 0;
  plan::StepOutlook step;
  std::vector<plan::Outlook> workers;  // members and parked ones
  plan::Advice advice;
  Noise noise;
};

struct Evaluated {
  std::uint64_t version = 0, epoch = 0, samples = 0, correct = 0;
  double weight = 0, loss_sum = 0;
  bool exact = true;  // of the exact weights; else of those that workers hold: Coordinator::held()
  std::vector<double> scores{};
};

/// What the run waits for, for the display: one sentence, e.g. "waiting for laptop/cpu (87 of 128 samples)".
class CoordinatorOutput {
 public:
  virtual ~CoordinatorOutput() = default;
  virtual void send(SessionId session, wire::Frame frame, Lane lane) = 0;
  virtual void close(SessionId session, const wire::Bye& bye) = 0;  // Bye was sent; close when it is out
  /// Of what was sent on the lanes of weights, bytes that are not on their way yet.
  [[nodiscard]] virtual std::size_t queued_bytes(SessionId) const { return 0; }
  /// The worker of this session is to make these steps by itself; answer with delegated_step() and delegation_ended().
  /// False if it cannot, and is not to be asked again.
  virtual bool delegate(SessionId, const DelegatedSteps&) { return false; }
  /// It is to end after the step it is at.
  virtual void cut(SessionId, std::uint64_t /*number*/) {}
  /// Of this session's worker, where that is of this process and its device can make steps.
  virtual std::shared_ptr<DeviceServer> device_server(SessionId) { return nullptr; }
  virtual void worker_changed(const WorkerChange& change) = 0;
  virtual void warning(std::string text) = 0;
  /// Called before the next pass opens; the server may be snapshotted here.
  virtual void step_closed(const StepClosed& step) = 0;
  virtual void planned(const Planned& plan) = 0;  // each time other workers take part
  virtual void evaluated(const Evaluated& evaluation) = 0;
  /// The learning rates by group from the next step on, before which every evaluation then ends; empty: as they are.
  virtual std::vector<double> rates_after(const Evaluated&) { return {}; }
  /// Until resume() nothing trains or evaluates, and no worker of this process is given anything to compute. What it
  /// has in hand, of which nothing is needed any more, may still go on. `step`: the pause of a step, else of an eval
  /// point.
  virtual void paused(std::uint64_t /*version*/, bool /*step*/) {}
  virtual void finished() = 0;           // all steps and the last evaluation are done
  virtual void failed(Error error) = 0;  // the run cannot go on (diverged, …)
};

/// Where a worker is, as seen from the coordinator. Checksums are for the network; what is in the same process may join
/// without a cap, and sees the weights themselves.
enum class Locality : std::uint8_t { process, machine, network };

class Coordinator {
 public:
  /// `server` holds the weights to start from; its version is the first step. REQUIRES output outlives this.
  Coordinator(CoordinatorOptions options, ps::Server server, CoordinatorOutput& output);
  ~Coordinator();

  void start(Time now);
  /// The worker has proven itself. Sends RunSpec (and the files of a script). `key`: by which its machine is known
  /// again whatever name it gives; empty: by the name alone.
  void session_opened(SessionId session, const wire::Hello& hello, Locality locality, Time now, std::string key = {});
  void session_frame(SessionId session, const wire::Frame& frame, Time now);
  void session_closed(SessionId session, const std::string& why, Time now);
  void delegated_step(SessionId session, const DelegatedStep& step, Time now);
  /// At its end, because it was cut, or with the error because of which it cannot go on.
  void delegation_ended(SessionId session, const DelegationEnd& end, Time now);
  /// Call at least every 100 ms. A gap of more than a second since the last call moves all deadlines by the gap.
  void tick(Time now);
  /// Ends the pause at this version. REQUIRES paused(version) was called; drops what comes late.
  void resume(const Resume& resume, Time now);
  /// No new pass opens after the current step closes (or at once when no step is open); then finished() is called.
  /// `final`: it is not to be resumed, so the workers are told that it is over.
  void stop(Time now, bool final = false);

  /// Before all of server() is asked for: the optimizer's state may be on a device. Errors: it is lost.
  Status download_state();
  /// Its weights are the exact ones: what steps start from and what is saved.
  [[nodiscard]] const ps::Server& server() const;
  /// What workers compute and evaluate with at this version: the same, or with lossy weights close to it.
  [[nodiscard]] const SharedBytes& held(ChunkId chunk) const;
  /// What the loss gets of the steps to come.
  [[nodiscard]] const LossState& state() const;
  [[nodiscard]] std::uint64_t epoch() const;
  [[nodiscard]] std::uint64_t steps() const;  // the run stops at this version, unless the batch changes again
  /// The positions of a step, likewise.
  [[nodiscard]] StepRange range(std::uint64_t step) const;
  [[nodiscard]] std::string waiting_for() const;
  /// Somebody has work of the run in hand.
  [[nodiscard]] bool computes() const;
  /// For the workers that are here; empty until all of them are measured. `local_steps`: in a run of exact steps, a
  /// round of so many of them.
  [[nodiscard]] std::optional<Planned> forecast(std::uint64_t global_batch, std::uint64_t local_steps = 1);
  [[nodiscard]] std::size_t workers() const;  // admitted now
  /// For one session more, if need be in the place of one that has shown nothing since it was opened.
  [[nodiscard]] bool has_room(Time now) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace motley::engine

#pragma once
// Private to coordinator*.cpp: frames to events (coordinator_frames.cpp), actions to frames (coordinator_actions.cpp),
// arithmetic (coordinator_steps.cpp). One thread at a time.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cluster/coordinator_machine.h"
#include "engine/coordinator.h"
#include "engine/coordinator_noise.h"
#include "engine/coordinator_pace.h"
#include "engine/coordinator_uploads.h"
#include "engine/coordinator_weights.h"

namespace motley::engine {

// Of a worker that was silent for so many nothing is learned, and if it comes back under the same name its old channel
// is dead.
inline constexpr int kMissedHeartbeats = 2;

struct Coordinator::Impl {
  struct Session {
    SessionId id = 0;
    wire::Hello hello;
    Reach reach = Reach::network;
    std::uint64_t fence = 0;  // 0: not admitted
    fleet::WorkerId worker = 0;
    std::string name;              // unique among those connected
    std::optional<wire::Bye> bye;  // what to say when it is closed; empty: by the reason of the machine
    std::string why;               // likewise for the display
    bool gone = false;             // the channel is closed, nothing can be sent
    bool said_bye = false;
    std::uint64_t heartbeat_heard_ns = 0;
    Time heartbeat_at{};
    bool computes = false;  // by its newest heartbeat
    struct Sent {
      std::uint64_t version;
      Time at;
      std::uint64_t bytes = 0;
    };
    std::optional<Sent> weights_sent{};  // beside the run, until they are there
    // A version of which every chunk is there before what is sent now on the lane of weights.
    std::optional<std::uint64_t> holds{};
    [[nodiscard]] bool local() const noexcept { return reach == Reach::process; }
    [[nodiscard]] bool remote() const noexcept { return reach == Reach::network; }
  };
  struct Worker {  // by number - 1
    std::string name;
    bool seen = false;                             // was a member before
    double compute_seconds = 0, wait_seconds = 0;  // of its last finished lease
    double finish_seconds = 0;                     // of its first lease of the pass
    std::optional<wire::Taken> taken{};            // of its newest lease with feedback
  };
  struct Expectation {  // what a frame should have been
    std::string expected, found;
  };

  Impl(CoordinatorOptions given, ps::Server start, CoordinatorOutput& out);

  void feed(const modes::Event& event);
  void perform(const modes::Action& action);

  // From frames to events.
  void on_control(Session& session, const wire::Frame& frame);
  void on_message(Session& session, const wire::Message& message);
  void on_gradient(Session& session, const wire::Frame& frame);
  void on_ready(Session& session, const wire::Ready& ready);
  void on_refresh(Session& session, const wire::Refresh& refresh);
  void on_begin(Session& session, const wire::Begin& begin);
  void on_finish(Session& session, const wire::Finish& finish);
  void on_bye(Session& session, const wire::Bye& bye);
  [[nodiscard]] std::optional<Expectation> header_fault(const wire::FrameHeader& header, std::size_t body) const;
  [[nodiscard]] std::optional<wire::Bye> refusal(const wire::Ready& ready) const;
  /// What may come, for chunks of large tensors. With feedback: the first lease of a pass only, since the gradient of a
  /// range that is granted again must not depend on who computes it.
  [[nodiscard]] wire::CodecId codec_of(const modes::Lease& lease) const;
  [[nodiscard]] bool has_feedback(const modes::Lease& lease) const;
  [[nodiscard]] const modes::Lease* live_lease(const Session& session, std::uint64_t pass, std::uint64_t lease) const;
  void violation(Session& session, std::string expected, std::string found);
  void end_session(Session& session, wire::Bye bye, std::string why);
  void name_worker(Session& session);
  void drop_frame() noexcept { ++dropped; }

  // From actions to frames.
  void send_control(const Session& session, const wire::Message& message);
  void send_spec(const Session& session);
  /// What the loss gets, where there is such a thing.
  void send_state(const Session& session);
  void change_state(SharedBytes bytes);
  /// Returns how many bytes of the body that took.
  std::size_t send_chunk(const Session& session, VersionFrames& frames, ChunkId chunk, Lane lane);
  /// The next version of a chunk, for those who hold this one.
  void publish(ChunkId chunk, const SharedBytes& exact);
  [[nodiscard]] wire::CodecId weights_codec() const;
  void admit(const modes::Action& action);
  void send_weights(const modes::Action& action);
  void send_next(const modes::Action& action);
  void send_pass(const modes::Action& action);
  void send_grant(const modes::Action& action);
  void send_taken(const modes::Action& action);
  void send_calibration(const modes::Action& action);
  void send_evaluation_aside(const modes::Action& action);
  void close_session(const modes::Action& action);
  void report_closed(const Session& session, const modes::Action& action, const std::string& reason);
  [[nodiscard]] wire::Bye bye_for(const modes::Action& action, const std::string& reason) const;
  void tell(const Session& session, WorkerEvent event, const std::string& reason);
  [[nodiscard]] std::string sentence(const modes::Reason& reason) const;
  [[nodiscard]] std::string name_of(fleet::WorkerId worker) const;

  // Steps that a worker makes by itself: coordinator_solo.cpp
  void lend(const modes::Action& action);
  /// Takes over the steps of the stretch so far, after which all is as in `after`.
  void take_steps(const Session& session, const ps::Snapshot& after);
  [[nodiscard]] StepClosed describe_step(const Session& session, const StretchStep& step) const;

  // Arithmetic.
  void reduce(ChunkId chunk);
  void clip();
  void apply(ChunkId chunk);
  void close_step();
  void measure_late(const modes::Action& action);
  /// Something was heard of it lately.
  [[nodiscard]] bool lives(const fleet::Member& member) const;
  void close_evaluation();
  void evaluated_aside(const wire::Finish& finish);
  /// What workers hold of this version is what the server has.
  [[nodiscard]] bool held_exactly() const;
  [[nodiscard]] Noise noise_now() const;
  [[nodiscard]] std::optional<BatchChange> next_batch(const StepClosed& step) const;
  void diverged(const modes::Action& action);
  [[nodiscard]] StepClosed describe_step();
  [[nodiscard]] std::string waiting_for() const;
  [[nodiscard]] std::optional<Planned> forecast(std::uint64_t global_batch);

  CoordinatorOptions options;
  ps::Server server;
  CoordinatorOutput& output;
  MeasuredPace pace;
  cluster::CoordinatorMachine machine;
  Uploads uploads;
  VersionFrames current, next;            // whole; growing while the step closes
  BufferPool pool;                        // of what deltas are and lead to
  double pass_share;                      // of the bytes of a version: what a pass moves in one direction
  std::vector<SharedBytes> state_pieces;  // of options.state, once somebody got them
  std::map<SessionId, Session> sessions;
  std::vector<Worker> workers;
  Time now{};
  std::vector<modes::Event> events;  // waiting for the machine
  modes::Actions actions;
  std::vector<codec::Encoded> parts;
  bool feeding = false;
  bool failed = false;
  bool aside_exact = true;  // what is evaluated beside the training
  ChunkId last_reduced = 0;
  std::optional<bool> keeps_gradients;                  // of the open step, once a chunk of it is applied
  std::vector<SharedBytes> gradients;                   // by chunk, then
  std::map<std::uint64_t, std::vector<double>> scores;  // of the open evaluation, by lease
  StepNorms norms;                                      // of the open step
  plan::NoiseScale noise;
  std::vector<StretchStep>
      on_device;              // steps of the stretch that are not taken over, since their weights are still there
  bool batch_news = false;    // it changed, and no plan was told since
  std::uint64_t dropped = 0;  // frames of old sessions, passes and leases
};

}  // namespace motley::engine

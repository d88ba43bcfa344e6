#pragma once
// One worker with its threads: engine::Worker on a mailbox, the computation on a thread of its own, and the channel to
// the coordinator — an in-process connection, or TCP connections (control, data) that are made again when they break.

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "engine/worker/worker.h"
#include "fleet/token.h"
#include "runtime/compute_thread.h"
#include "runtime/data_lanes.h"
#include "runtime/lanes.h"
#include "runtime/mailbox.h"
#include "runtime/persist/speed_store.h"
#include "runtime/worker/link_change.h"
#include "runtime/worker/token_source.h"
#include "transport/connection.h"
#include "transport/crypto.h"
#include "transport/tcp/tcp.h"

namespace motley::runtime {

/// A computation and what its Ready message says of its data.
struct PreparedWorker {
  Prepared prepared;
  engine::Compared compared;
  engine::SampleCounts samples;
  std::string speed_key;                     // of device, model and precision
  std::optional<plan::EndCost> wire_cost{};  // of this machine, where a codec is open
};

inline constexpr Duration kDeserted = std::chrono::minutes(2);  // then the head has ended for good

struct WorkerHostOptions {
  wire::Hello hello;
  /// Runs on the compute thread; may take long (downloads, compilation).
  std::function<Result<PreparedWorker>(const wire::RunSpec&, const SharedBytes& script_files)> prepare;
  std::filesystem::path speeds;  // see SpeedStore
  /// How many data connections to make to the coordinator there; from 1 to wire::kDataConnectionsMax.
  std::function<std::size_t(const transport::PeerIdentity&)> data_connections =
      [](const transport::PeerIdentity& peer) { return runtime::data_connections(peer); };
  ResourcePolicy resource_policy;
  /// Ends with ErrorCode::network where nothing has answered for so long, as long as it was not admitted yet.
  std::optional<Duration> patience{};
  /// Ends with ErrorCode::network where for so long all addresses of the token have said that nobody listens there. A
  /// machine that does not answer may be asleep, or this one without a network: that is waited for.
  Duration deserted = kDeserted;
  /// Ends with ErrorCode::network where nobody answers to the token, or it is refused, and its file has another; null:
  /// there is no file.
  std::shared_ptr<TokenSource> token_source{};
};

/// What people who look at a joined worker see. Called on the worker's mailbox thread.
struct WorkerHostEvents {
  std::function<void(const std::string& text)> note;
  std::function<void(LinkChange change, const std::string& why)> link;
  std::function<void(std::uint64_t version, std::uint64_t samples)> step;
  std::function<void(Status end)> ended;  // once; ok after the run is done or after leave()
};

class WorkerHost final : engine::WorkerOutput {
 public:
  WorkerHost(WorkerHostOptions options, WorkerHostEvents events);
  ~WorkerHost() override;
  WorkerHost(const WorkerHost&) = delete;
  WorkerHost& operator=(const WorkerHost&) = delete;

  /// The in-process way: both lanes on one connection, no proof, no way back.
  void run_local(std::shared_ptr<transport::Connection> connection);
  /// Connects, proves the secret and keeps trying until the run is done, it is refused for good, or leave(). REQUIRES
  /// tcp (with `identity`) outlives this.
  void run_remote(transport::Tcp& tcp, const transport::Digest& own_spki, fleet::JoinToken token);
  /// For the coordinator of the same process, which may have it make steps by itself. What is ordered after the end of
  /// this host is dropped.
  [[nodiscard]] std::shared_ptr<engine::LocalWorker> local_worker();
  /// Finish the micro-batch in hand, say goodbye, end.
  void leave();
  /// The same, but model, data and identity are kept, and resume() joins again. REQUIRES run_remote(), now or later.
  void pause(std::string why);
  void resume();

 private:
  class LaneReceiver;
  class LocalDelegate;
  static constexpr Duration kBackoffFirst = std::chrono::milliseconds(200);
  static constexpr Duration kBackoffMax = std::chrono::seconds(3);
  static constexpr Duration kOverWait = std::chrono::seconds(2);         // where the token's file is gone
  static constexpr Duration kOtherTokenWait = std::chrono::seconds(10);  // for a token's file, after a refusal
  enum class Stage : std::uint8_t { idle, connecting, proving, joined, ended };

  void dial();
  void redial(Duration after, const std::string& why);
  [[nodiscard]] bool head_has_ended(const Error& why);
  [[nodiscard]] Duration longest_backoff() const;
  void on_control_connected(std::uint64_t generation, Result<std::shared_ptr<transport::Connection>> result);
  void on_frame(std::uint64_t generation, const wire::Frame& frame);
  void on_proving_frame(const wire::Frame& frame);
  void on_bye_before_joining(const wire::Bye& bye);
  void on_stranger(const Error& error);
  void on_refused(const Error& error);
  void on_closed(std::uint64_t generation, const Error& error);
  void on_data_closed(std::uint64_t generation, const Error& error);
  void attach_data_lanes(std::uint64_t fence);
  void attach_data_lane(std::uint64_t fence, std::uint32_t number);
  void on_data_connected(const std::shared_ptr<transport::Connection>& connection, std::uint64_t fence,
                         std::uint32_t number);
  void drop_channel();
  void finish(Status status);
  void on_tick();
  void say_once(const std::string& text);
  void tell_prepared();

  void send(wire::Frame frame, engine::Lane lane) override;
  void prepare(const wire::RunSpec& spec, const SharedBytes& script_files) override;
  void start_task(engine::TaskOrder order) override;
  void weights_arrived(std::uint64_t number, ChunkId chunk, SharedBytes weights) override;
  void limit_task(std::uint64_t number, std::uint64_t count) override;
  void finish_early(std::uint64_t number) override;
  void make_steps(engine::DelegatedSteps order) override;
  void end_steps(std::uint64_t number) override;
  void admitted(std::uint64_t worker) override;
  void step_done(std::uint64_t version, std::uint64_t samples_mine) override;
  void disconnect(bool reconnect, const Error& why) override;

  WorkerHostOptions options_;
  WorkerHostEvents events_;
  std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>();
  // Everything below belongs to the mailbox's thread once it runs.
  std::optional<engine::Worker> worker_;
  transport::Tcp* tcp_ = nullptr;
  transport::Digest own_spki_{};
  std::optional<fleet::JoinToken> token_;
  std::shared_ptr<transport::Connection> control_;
  DataLanes data_;
  LaneOrder order_;
  std::uint64_t received_bytes_ = 0;  // by data_, at the last tick
  std::optional<DataLaneEnd> data_end_;
  Stage stage_ = Stage::idle;
  std::uint64_t generation_ = 0;  // of the channel; what older ones deliver is dropped
  Time redial_at_{};
  Time proof_deadline_{};
  Duration backoff_{};
  Time answered_{};        // last; it had a connection then
  bool met_head_ = false;  // once, so its token is right
  std::optional<Time> refused_at_{}, deserted_at_{};
  bool leaving_ = false;
  bool paused_ = false;
  std::string aside_;  // why this session was given up; empty: it was not
  std::string last_said_;
  std::optional<Error> task_failure_;  // of the last task
  std::optional<wire::RunSpec> prepared_spec_;
  engine::Compared compared_;
  std::string speed_key_;
  engine::SampleCounts samples_;
  std::optional<plan::EndCost> wire_cost_;
  Layout layout_;
  std::shared_ptr<ComputeThread> compute_;
};

}  // namespace motley::runtime

#pragma once
// The connections of workers: they prove that they may come in, become the control and data lanes of a session, and
// end. Tells the engine of sessions and of their frames. What is not said to be of any thread is of the mailbox's.

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/head/coordinator.h"
#include "engine/local/local_worker.h"
#include "fleet/token.h"
#include "report/sink.h"
#include "runtime/data_lanes.h"
#include "runtime/head/block_desk.h"
#include "runtime/head/invitations.h"
#include "runtime/head/pairing.h"
#include "runtime/lanes.h"
#include "runtime/mailbox.h"
#include "runtime/pairing.h"
#include "transport/connection.h"
#include "transport/crypto.h"

namespace motley::runtime {

struct ConnectionsOptions {
  fleet::JoinToken token;
  transport::Digest own_spki{};
  std::uint32_t incarnation = 1;
  std::string run_dir;
  std::shared_ptr<const Offers> offers{};  // for who wants files; null: there are none
  std::string machine{};                   // its name, for who pairs
  bool shows_codes = false;                // makes and tells another one wherever one has ended
  bool verbose = false;                    // of report::CodeShown
};

class Connections {
 public:
  /// REQUIRES engine and sink outlive this, and that nothing runs on the mailbox any more when this is destroyed.
  Connections(ConnectionsOptions options, std::shared_ptr<Mailbox> mailbox, engine::Coordinator& engine,
              report::Sink& sink)
      : options_(std::move(options)),
        mailbox_(std::move(mailbox)),
        engine_(engine),
        sink_(sink),
        invitations_(options_.token, options_.run_dir),
        pairing_(options_.run_dir),
        desk_(options_.offers ? std::make_unique<BlockDesk>(options_.offers, options_.token.run) : nullptr) {
    pairing_.look(unix_seconds());
  }

  /// A connection from outside; it has to prove itself first. Any thread.
  void accept(std::shared_ptr<transport::Connection> connection);
  /// A worker of this process, and how steps are delegated to it; null: they are not. Any thread.
  void add_local(wire::Hello hello, std::shared_ptr<transport::Connection> connection,
                 std::shared_ptr<engine::LocalWorker> worker);

  void send(engine::SessionId session, wire::Frame frame, engine::Lane lane);
  /// On the data connections of a session, and for them while they are not there yet.
  [[nodiscard]] std::size_t queued_bytes(engine::SessionId session) const;
  /// The engine knows why. What was sent to it arrives.
  void close(engine::SessionId session, const wire::Bye& bye) { end_session(session, bye.code, false); }
  /// Sends away whose data connection never came or was lost, who does not read, and what `motley revoke` says. Shows
  /// the next code where one has ended.
  void watch();
  /// The engine hears nothing more, and nobody comes in.
  void shut() noexcept { shut_ = true; }
  void close_all();
  /// Who fetches files is told so, and sent away.
  void close_files(const wire::Bye& bye);
  /// See BlockDesk.
  void pace_files(double step_seconds, std::uint64_t samples) {
    if (desk_) desk_->step(step_seconds, samples);
  }
  void set_training(bool training) {
    if (desk_) desk_->set_training(training);
  }

  /// By a worker's session on the wire, since it was asked before.
  void add_traffic(report::WorkerPart& part);
  /// The worker of this process whose session it is; null: there is none.
  [[nodiscard]] std::shared_ptr<engine::LocalWorker> local_worker(engine::SessionId session) const;
  [[nodiscard]] std::vector<std::shared_ptr<engine::LocalWorker>> local_workers() const;
  [[nodiscard]] bool has_local(const std::string& name) const;
  [[nodiscard]] bool empty() const noexcept { return sessions_.empty(); }

 private:
  class LinkReceiver;
  using LinkId = std::uint64_t;
  enum class LinkRole : std::uint8_t { unproven, control, data, files };
  struct Link {
    std::shared_ptr<transport::Connection> connection;
    LinkRole role = LinkRole::unproven;
    std::optional<wire::Hello> hello;
    engine::SessionId session = 0;
    std::uint64_t run = 0;                   // that it asked for
    std::unique_ptr<PairingHead> pairing{};  // of who has no token
    std::uint64_t code_number = 0;           // by which code
  };
  struct Session {
    std::string name;
    bool local = false;
    LinkId control = 0;
    std::vector<LinkId> data{};                                   // in the order in which they came
    std::uint64_t token_id = 0;                                   // that let it in
    DataLanes lanes{};                                            // of these
    std::vector<std::pair<wire::Frame, engine::Lane>> waiting{};  // until all of them are there
    std::size_t waiting_bytes = 0;                                // of these
    Time opened{};
    transport::Traffic reported{};
    std::shared_ptr<engine::LocalWorker> worker{};  // of this process
    std::optional<DataLaneEnd> data_end{};
    [[nodiscard]] std::vector<LinkId> links() const;  // that of control first
  };

  void add_link(LinkId id, const std::shared_ptr<transport::Connection>& connection);
  void on_frame(LinkId id, const wire::Frame& frame);
  void on_unproven_frame(LinkId id, Link& link, const wire::Frame& frame);
  void on_proof(LinkId id, Link& link, const wire::Proof& proof);
  // Who has no token: connections_pairing.cpp.
  void on_pairing_frame(LinkId id, Link& link, const wire::Message& message);
  void on_pair(LinkId id, Link& link, const wire::Pair& pair);
  void on_pair_confirm(LinkId id, Link& link, const wire::PairConfirm& confirm);
  void on_wrong_code(LinkId id, const Link& link, std::uint64_t unix_s);
  [[nodiscard]] wire::Bye no_code(std::uint64_t unix_s) const;
  void show_next_code();
  // Who fetches files is no worker, and has no session of the engine: connections_files.cpp.
  void open_files(LinkId id, Link& link);
  void on_files_frame(LinkId id, const wire::Frame& frame);
  void end_files(LinkId id, const wire::Bye& bye);
  void on_attach(LinkId id, Link& link, const wire::Attach& attach);
  void refuse(LinkId id, const Link& link, const wire::Bye& bye);
  /// That were sent to it and that no kernel has taken yet.
  [[nodiscard]] std::size_t unread_bytes(const Session& session) const;
  void send_away_revoked();
  void on_link_closed(LinkId id, const Error& error);
  void end_session(engine::SessionId session, const std::string& why, bool tell_engine);
  void end_faulty_sessions();

  const ConnectionsOptions options_;
  const std::shared_ptr<Mailbox> mailbox_;
  engine::Coordinator& engine_;
  report::Sink& sink_;
  std::atomic<LinkId> next_link_{1};
  std::map<LinkId, Link> links_;
  std::map<engine::SessionId, Session> sessions_;
  engine::SessionId next_session_ = 1;
  Invitations invitations_;
  Pairing pairing_;
  Time last_refusal_said_{}, looked_for_revoked_{};
  std::uint64_t strangers_ = 0;  // connections that did not prove the secret
  bool shut_ = false;
  const std::unique_ptr<BlockDesk> desk_;
};

}  // namespace motley::runtime

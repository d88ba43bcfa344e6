#pragma once
// The coordinator with its threads: engine::Coordinator on a mailbox, the door where connections prove themselves,
// sessions with their two lanes, the journal.

#include <atomic>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/coordinator.h"
#include "engine/local_worker.h"
#include "fleet/token.h"
#include "report/sink.h"
#include "runtime/data_lanes.h"
#include "runtime/head/invitations.h"
#include "runtime/head/journal.h"
#include "runtime/lanes.h"
#include "runtime/mailbox.h"
#include "runtime/persist/redo_budget.h"
#include "transport/connection.h"
#include "transport/crypto.h"

namespace motley::runtime {

struct CoordinatorHostOptions {
  engine::CoordinatorOptions engine;
  fleet::JoinToken token;
  transport::Digest own_spki{};
  JournalOptions journal;
  std::function<std::vector<double>(const report::EvalDone&)> rates_after;  // may be empty
};

class CoordinatorHost final : engine::CoordinatorOutput {
 public:
  /// Events come on the mailbox's thread. Where options.engine.holds says so report::Held is among them: answer
  /// go_on(). `on_end` is called once, on the mailbox's thread: when all steps are done (ok), stopped (interrupted) or
  /// failed.
  CoordinatorHost(CoordinatorHostOptions options, ps::Server server, store::LedgerWriter ledger, report::Sink& sink,
                  std::function<void(Status)> on_end);
  ~CoordinatorHost() override;
  CoordinatorHost(const CoordinatorHost&) = delete;
  CoordinatorHost& operator=(const CoordinatorHost&) = delete;

  void start();
  /// A connection from outside; it has to prove itself first.
  void accept(std::shared_ptr<transport::Connection> connection);
  /// A worker of this process, and how steps are lent to it; null: they are not.
  void add_local(wire::Hello hello, std::shared_ptr<transport::Connection> connection,
                 std::shared_ptr<engine::LocalWorker> worker);
  /// A worker of this process ended with an error. Where it was the only one, so does the run.
  void local_failed(const std::string& name, const Error& error);
  /// Of a hold that was told. `mark`: it was that of a mark.
  void go_on(engine::Release release, bool mark);
  /// Finish the open step, then end. `final`: the workers need not come back.
  void stop(bool final = false);
  /// Steps of so many samples by the workers that are here; empty until all of them are measured.
  std::future<std::vector<std::optional<engine::Planned>>> forecast(std::vector<std::uint64_t> global_batches);
  /// Tells the sink, on the mailbox's thread.
  void tell(report::Event event);

 private:
  class LinkReceiver;
  using LinkId = std::uint64_t;
  enum class LinkRole : std::uint8_t { unproven, control, data };
  struct Link {
    std::shared_ptr<transport::Connection> connection;
    LinkRole role = LinkRole::unproven;
    std::optional<wire::Hello> hello;
    engine::SessionId session = 0;
    std::uint64_t run = 0;  // that it asked for
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
  void on_attach(LinkId id, Link& link, const wire::Attach& attach);
  void refuse(LinkId id, const Link& link, const wire::Bye& bye);
  /// That were sent to it and that no kernel has taken yet.
  [[nodiscard]] std::size_t unread_bytes(const Session& session) const;
  /// What `motley revoke` says.
  void send_away_revoked();
  void on_link_closed(LinkId id, const Error& error);
  void end_session(engine::SessionId session, const std::string& why, bool tell_engine);
  /// Whose data connection never came or was lost, or who does not read.
  void end_faulty_sessions();
  void on_tick();
  void judge_local_failures();
  /// By a worker's session on the wire, since it was asked before.
  void add_traffic(report::WorkerPart& part);

  void send(engine::SessionId session, wire::Frame frame, engine::Lane lane) override;
  void close(engine::SessionId session, const wire::Bye& bye) override;
  bool lend(engine::SessionId session, const engine::StretchOrder& order) override;
  void cut(engine::SessionId session, std::uint64_t number) override;
  void worker_changed(const engine::WorkerChange& change) override;
  void warning(std::string text) override;
  void planned(const engine::Planned& plan) override;
  void step_closed(const engine::StepClosed& step) override;
  void evaluated(const engine::Evaluated& evaluation) override;
  std::vector<double> rates_after(const engine::Evaluated& evaluation) override;
  void held(std::uint64_t version, bool step) override;
  void finished() override;
  void failed(Error error) override;
  void end(Status status, bool worth_keeping = true);

  CoordinatorHostOptions options_;
  report::Sink& sink_;
  std::function<void(Status)> on_end_;
  std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>();
  std::atomic<LinkId> next_link_{1};
  // The mailbox thread's own.
  const std::shared_ptr<RedoBudget> redo_budget_ = std::make_shared<RedoBudget>();
  engine::Coordinator engine_;
  Journal journal_;
  std::map<LinkId, Link> links_;
  std::map<engine::SessionId, Session> sessions_;
  engine::SessionId next_session_ = 1;
  std::map<std::string, Error> local_failures_;  // by name, while their sessions are not over
  bool ended_ = false;
  bool stopping_ = false;
  Invitations invitations_;
  Time last_refusal_said_{}, looked_for_revoked_{};
  std::uint64_t strangers_ = 0;  // connections that did not prove the secret
};

}  // namespace motley::runtime

#pragma once
// The coordinator with its threads: engine::Coordinator on a mailbox, the links and sessions of workers, the journal.

#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/head/coordinator.h"
#include "fleet/token.h"
#include "report/sink.h"
#include "runtime/head/connections.h"
#include "runtime/head/journal.h"
#include "runtime/head/later_sink.h"
#include "runtime/mailbox.h"
#include "transport/connection.h"
#include "transport/crypto.h"

namespace motley::runtime {

struct CoordinatorHostOptions {
  engine::CoordinatorOptions engine;
  fleet::JoinToken token;
  transport::Digest own_spki{};
  JournalOptions journal;
  std::function<std::vector<double>(const report::EvalDone&)> rates_after;  // may be empty
  std::string machine{};                                                    // of ConnectionsOptions
  std::shared_ptr<const Offers> offers{};                                   // likewise
  bool shows_codes = false, verbose = false;                                // likewise
};

class CoordinatorHost final : engine::CoordinatorOutput {
 public:
  /// Events come on the mailbox's thread. Where options.engine.pauses says so report::Paused is among them: answer
  /// go_on(). `on_end` is called once, on the mailbox's thread: when all steps are done (ok), stopped (interrupted) or
  /// failed.
  CoordinatorHost(CoordinatorHostOptions options, ps::Server server, store::LedgerWriter ledger, report::Sink& sink,
                  std::function<void(Status)> on_end);
  ~CoordinatorHost() override;
  CoordinatorHost(const CoordinatorHost&) = delete;
  CoordinatorHost& operator=(const CoordinatorHost&) = delete;

  void start();
  /// Where connections come in.
  [[nodiscard]] Connections& connections() noexcept { return connections_; }
  /// A worker of this process ended with an error. Where it was the only one, or all others are excluded, so does the
  /// run.
  void local_failed(const std::string& name, const Error& error);
  /// Of a pause that was told. `eval_point`: it was that of an eval point.
  void go_on(engine::Resume resume, bool eval_point);
  /// Finish the open step, then end. `final`: the workers need not come back.
  void stop(bool final = false);
  /// Steps of so many samples by the workers that are here, then rounds of so many of these; empty until all of them
  /// are measured.
  std::future<std::vector<std::optional<engine::Planned>>> forecast(std::vector<std::uint64_t> global_batches,
                                                                    std::uint64_t local_steps);
  /// Tells the sink, on the mailbox's thread.
  void tell(report::Event event);

 private:
  void on_tick();
  void judge_local_failures();

  void send(engine::SessionId session, wire::Frame frame, engine::Lane lane) override;
  void close(engine::SessionId session, const wire::Bye& bye) override;
  [[nodiscard]] std::size_t queued_bytes(engine::SessionId session) const override;
  bool delegate(engine::SessionId session, const engine::DelegatedSteps& order) override;
  void cut(engine::SessionId session, std::uint64_t number) override;
  std::shared_ptr<DeviceServer> device_server(engine::SessionId session) override;
  void worker_changed(const engine::WorkerChange& change) override;
  void warning(std::string text) override;
  void planned(const engine::Planned& plan) override;
  void step_closed(const engine::StepClosed& step) override;
  void evaluated(const engine::Evaluated& evaluation) override;
  std::vector<double> rates_after(const engine::Evaluated& evaluation) override;
  void paused(std::uint64_t version, bool step) override;
  void finished() override;
  void failed(Error error) override;
  void end(Status status, bool worth_keeping = true);

  CoordinatorHostOptions options_;
  std::function<void(Status)> on_end_;
  std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>();
  // The mailbox thread's own.
  LaterSink later_;  // what is told while the engine acts
  engine::Coordinator engine_;
  Journal journal_;
  Connections connections_;
  std::map<std::string, Error> local_failures_;  // by name, while their sessions are not over
  std::optional<Error> failed_here_;             // a worker of this process is out by this
  std::set<std::string> may_come_back_;          // who was lost or has left
  std::optional<Time> computed_{};               // last, as far as a tick has seen
  bool ended_ = false;
  bool stopping_ = false;
};

}  // namespace motley::runtime

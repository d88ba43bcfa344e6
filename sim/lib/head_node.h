#pragma once
// The machine with the coordinator: the real engine::Coordinator in a process that can die, and a disk that survives
// it. What is on the disk when it dies is a snapshot; the steps after it are lost.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/head/coordinator.h"
#include "sim/worker_node.h"
#include "sim/world.h"

namespace motley::sim {

class HeadNode final : public engine::CoordinatorOutput, public WorkerNode::Head {
 public:
  explicit HeadNode(World& world);

  /// From the disk, under a new incarnation.
  void start();
  void kill();
  void freeze();
  void thaw();

  [[nodiscard]] bool alive() const noexcept { return process_.alive(); }
  [[nodiscard]] bool frozen() const noexcept { return process_.frozen(); }
  [[nodiscard]] bool done() const noexcept { return done_; }
  [[nodiscard]] bool run_failed() const noexcept { return failed_; }
  [[nodiscard]] std::uint64_t version() const { return coordinator_ ? coordinator_->server().version() : 0; }
  [[nodiscard]] std::uint32_t incarnations() const noexcept { return incarnation_; }
  [[nodiscard]] std::uint64_t steps_delegated() const noexcept { return steps_delegated_; }
  [[nodiscard]] std::uint64_t deltas() const noexcept { return deltas_; }
  [[nodiscard]] std::vector<SharedBytes> weights() const;
  [[nodiscard]] std::vector<SharedBytes> held() const;  // by the workers
  [[nodiscard]] std::string waiting_for() const { return coordinator_ ? coordinator_->waiting_for() : "nothing"; }

  bool accept(std::size_t worker, const wire::Hello& hello, bool local, Network::End end, Network::SessionId& session,
              std::uint32_t& incarnation, engine::LocalWorker& here) override;

  void send(engine::SessionId session, wire::Frame frame, engine::Lane lane) override;
  void close(engine::SessionId session, const wire::Bye& bye) override;
  bool delegate(engine::SessionId session, const engine::DelegatedSteps& order) override;
  void cut(engine::SessionId session, std::uint64_t number) override;
  void worker_changed(const engine::WorkerChange& change) override;
  void warning(std::string text) override;
  void planned(const engine::Planned&) override {}
  void step_closed(const engine::StepClosed& step) override;
  void evaluated(const engine::Evaluated& evaluation) override;
  void paused(std::uint64_t version, bool step) override;
  void finished() override;
  void failed(Error error) override;

 private:
  void tick();
  void note(std::string_view what, std::uint64_t a = 0, std::uint64_t b = 0);
  Result<ps::Server> server_from_disk();
  void lost_states_after(std::uint64_t version);
  /// What the loss gets from now on, if anything new.
  std::optional<SharedBytes> next_state();
  engine::StepClosed sabotaged(const engine::StepClosed& step) const;

  World& world_;
  Philox random_;
  Philox body_;  // how long whoever paused the run looks at it
  Process process_;
  std::unique_ptr<engine::Coordinator> coordinator_;
  std::uint32_t incarnation_ = 0;
  std::vector<engine::SessionId> sessions_;
  std::map<engine::SessionId, engine::LocalWorker*> locals_;
  std::uint64_t steps_delegated_ = 0;  // and taken over
  std::uint64_t deltas_ = 0;
  bool done_ = false, failed_ = false;
  // The disk.
  std::uint64_t resumed_ = 0;                  // the newest eval point
  std::map<std::uint64_t, LossState> states_;  // by the version from which on it holds
  std::optional<ps::Snapshot> snapshot_;
  std::optional<std::pair<Time, ps::Snapshot>> next_snapshot_;  // being written
  std::map<std::uint64_t, std::vector<Owed>> owed_;             // by version; of rounds
};

}  // namespace motley::sim

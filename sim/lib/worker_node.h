#pragma once
// A machine with one worker: the real engine::Worker in a process that can die, a computer, and a line to the head.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "engine/worker/worker.h"
#include "sim/world.h"

namespace motley::sim {

class WorkerNode final : public engine::WorkerOutput, public engine::LocalWorker {
 public:
  /// The head, as the worker sees it when it dials.
  struct Head {
    virtual ~Head() = default;
    /// False if nobody answers.
    virtual bool accept(std::size_t worker, const wire::Hello& hello, bool local, Network::End end,
                        Network::SessionId& session, std::uint32_t& incarnation, engine::LocalWorker& here) = 0;
  };

  WorkerNode(World& world, Head& head, std::size_t index);

  void start();
  /// The process dies. `silent`: nobody is told.
  void kill(bool silent);
  void freeze();
  void thaw();
  void leave();
  void step_aside();
  void come_back();
  Computer& computer() { return computer_; }

  [[nodiscard]] bool running() const noexcept { return process_.alive() && !ended_; }
  [[nodiscard]] bool frozen() const noexcept { return process_.frozen(); }
  [[nodiscard]] bool ended() const noexcept { return ended_; }
  /// Contributions that its fault made wrong.
  [[nodiscard]] std::uint64_t lies() const noexcept { return mouth_.lies() + computer_.scaled(); }
  /// Steps that it had a share of since it may lie.
  [[nodiscard]] std::uint64_t steps_lying() const noexcept { return steps_lying_; }
  [[nodiscard]] bool ended_well() const noexcept { return ended_well_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

  /// As the head sees it when they are one process.
  bool delegate(engine::DelegatedSteps order, engine::DelegationEvents events) override;
  void cut(std::uint64_t number) override;
  bool when_idle(std::function<void()>) override { return false; }  // no pause waits for anybody here

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

 private:
  void tick();
  void dial();
  void dial_later();
  [[nodiscard]] wire::Hello hello() const;
  void note(std::string_view what, std::uint64_t a = 0, std::uint64_t b = 0);
  [[nodiscard]] const WorkerSetup& setup() const { return world_.scenario.workers[index_]; }

  World& world_;
  Head& head_;
  std::size_t index_;
  std::string name_;
  Philox random_;
  FaultyMouth mouth_;
  Process process_;
  Computer computer_;
  std::unique_ptr<engine::Worker> worker_;
  Network::SessionId session_ = 0;
  std::uint32_t incarnation_ = 0;
  std::uint64_t steps_lying_ = 0, newest_step_ = 0;
  std::uint64_t dial_number_ = 0;  // of the attempt that counts
  bool ended_ = false, ended_well_ = false, prepared_ = false, aside_ = false;
};

}  // namespace motley::sim

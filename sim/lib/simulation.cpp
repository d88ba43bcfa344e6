#include "sim/simulation.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <tuple>

#include "base/assert.h"
#include "sim/head_node.h"
#include "sim/worker_node.h"

namespace motley::sim {
namespace {

constexpr Duration kPerStepMax = std::chrono::seconds(4);  // on average, of virtual time
// Wrong contributions of one worker until it is out, for the third of them that was found. One that is lost with its
// session is not found; a lease that is handed back is one only where two more are in a row; and of wrong gradients one
// in six or more is looked at.
constexpr std::uint64_t lies_max(Fault fault) {
  return fault == Fault::wrong ? 100 : fault == Fault::hands_back ? 40 : 12;
}
constexpr Duration kLastWordMax = std::chrono::seconds(20);     // from the end of the run to the end of the last worker
constexpr Duration kPoisonAftermath = std::chrono::seconds(2);  // the lease is computed again

class Simulation {
 public:
  Simulation(const Scenario& scenario, Data data, const Reference& reference, const SimulationOptions& options)
      : scenario_(scenario), world_(scenario, std::move(data), reference, options.print), head_(world_) {
    world_.sabotage = options.sabotage;
    for (std::size_t i = 0; i < scenario.workers.size(); ++i) {
      world_.network.set_link(i, scenario.workers[i].link);
      workers_.push_back(std::make_unique<WorkerNode>(world_, head_, i));
    }
  }

  Report run() {
    head_.start();
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      world_.broken_until(scenario_.workers[i].joins_at);
      world_.queue.at(scenario_.workers[i].joins_at, [this, i] { bring_up(i); });
    }
    for (const Disturbance& d : scenario_.disturbances) {
      world_.queue.at(d.at, [this, &d] { strike(d); });
    }
    loop();
    return report();
  }

 private:
  /// By the slowest worker alone.
  [[nodiscard]] Duration slowest_evaluation() const {
    double samples_per_second = std::numeric_limits<double>::infinity(), factor = 1;
    for (const WorkerSetup& worker : scenario_.workers)
      samples_per_second = std::min(samples_per_second, worker.samples_per_second);
    for (const Disturbance& d : scenario_.disturbances)
      if (d.trouble == Trouble::slow) factor = std::min(factor, d.factor);
    const double seconds = static_cast<double>(scenario_.run.test_samples) / (samples_per_second * factor);
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
  }

  void loop() {
    const Duration last =
        scenario_.disturbances.empty() ? Duration(0) : scenario_.disturbances.back().at + std::chrono::seconds(10);
    const Time deadline = last + kPerStepMax * static_cast<std::int64_t>(scenario_.run.steps) +
                          slowest_evaluation() * static_cast<std::int64_t>(scenario_.run.steps) +
                          std::chrono::seconds(30);
    Time done_at{};
    while (world_.queue.step()) {
      const Time now = world_.queue.now();
      if (head_.run_failed()) return;
      if (!head_.done()) {
        if (now <= deadline) continue;
        world_.checks.fail("at " + std::to_string(seconds(now)) + " s the run stands at version " +
                           std::to_string(head_.version()) + ": " + head_.waiting_for());
        return;
      }
      if (done_at == Time{}) {
        done_at = now;
        world_.checks.finished(head_.version(), head_.weights());
      }
      if (std::none_of(workers_.begin(), workers_.end(), [](const auto& w) { return w->running(); })) return;
      if (now <= std::max(done_at, world_.healed_at) + kLastWordMax) continue;
      for (const auto& worker : workers_) {
        if (worker->running()) world_.checks.fail(worker->name() + " never heard that the run is over");
      }
      return;
    }
  }

  Report report() {
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      const auto& worker = workers_[i];
      const bool sound = scenario_.workers[i].fault == Fault::none;
      const bool turned_away = worker->ended() && !worker->ended_well();
      if (sound && turned_away) world_.checks.fail(worker->name() + " was turned away for good");
      const bool told_apart = scenario_.workers[i].fault >= Fault::negated;  // the report says of these
      if (!told_apart && worker->lies() > lies_max(scenario_.workers[i].fault) && !turned_away) {
        world_.checks.fail(worker->name() + " was not found in " + std::to_string(worker->lies()) +
                           " wrong contributions");
      }
    }
    Report report;
    report.failures = world_.checks.failures();
    report.trace_hash = world_.trace.hash();
    report.virtual_seconds = seconds(world_.queue.now());
    report.events = world_.queue.happened();
    report.frames = world_.network.frames();
    report.duplicates = world_.network.duplicates();
    report.incarnations = head_.incarnations();
    report.steps_delegated = head_.steps_delegated();
    report.deltas = head_.deltas();
    for (const auto& worker : workers_) report.lies += worker->lies();
    report.sound_struck = world_.sound_struck;
    report.verified = world_.verified;
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      if (scenario_.workers[i].fault < Fault::negated) continue;
      report.liar_out = workers_[i]->ended() && !workers_[i]->ended_well();
      report.liar_steps = workers_[i]->steps_lying();
    }
    report.measured = world_.checks.measured();
    return report;
  }

  void bring_up(std::size_t worker) {
    WorkerNode& node = *workers_[worker];
    // The head's own worker comes up with the head.
    if (node.running() || node.ended() || (scenario_.workers[worker].local && !head_.alive())) return;
    up_[worker] = true;
    node.start();
  }

  void strike(const Disturbance& d) {
    if (head_.done()) return;
    world_.trace.note(world_.queue.now(), "trouble", to_word(d.trouble), d.worker);
    WorkerNode& node = *workers_[d.worker];
    switch (d.trouble) {
      case Trouble::kill:
      case Trouble::power:
        if (!node.running()) return;
        node.kill(d.trouble == Trouble::power);
        until(d, [this, worker = d.worker] { bring_up(worker); });
        break;
      case Trouble::freeze:
        if (!node.running() || node.frozen()) return;
        node.freeze();
        until(d, [&node] { node.thaw(); });
        break;
      case Trouble::partition:
        partition(d, true, true);
        break;
      case Trouble::partition_up:
        partition(d, true, false);
        break;
      case Trouble::partition_down:
        partition(d, false, true);
        break;
      case Trouble::stall_data:
        stall(d);
        break;
      case Trouble::reset:
        world_.network.reset_link(d.worker, "connection reset");
        break;
      case Trouble::slow:
        node.computer().set_speed(d.factor);
        break;
      case Trouble::poison:
        node.computer().poison_next();
        world_.broken_until(world_.queue.now() + kPoisonAftermath);
        break;
      case Trouble::leave:
        if (node.running()) node.leave();
        break;
      case Trouble::step_aside:
        if (!node.running()) return;
        node.step_aside();
        until(d, [&node] { node.come_back(); });
        break;
      case Trouble::head_kill:
        kill_head(d);
        break;
      case Trouble::head_freeze:
        if (!head_.alive() || head_.frozen()) return;
        head_.freeze();
        freeze_local(true);
        until(d, [this] {
          head_.thaw();
          freeze_local(false);
        });
        break;
    }
    world_.broken_until(world_.queue.now());
  }

  void until(const Disturbance& d, EventQueue::Action action) {
    world_.broken_until(world_.queue.now() + d.lasts);
    world_.queue.after(d.lasts, std::move(action));
  }

  // Two partitions of one link may overlap: a direction is open when the last has ended.
  void partition(const Disturbance& d, bool up, bool down) {
    const auto change = [this, worker = d.worker](Side side, int by) {
      int& count = blocked_[{worker, side}];
      count += by;
      MOTLEY_ASSERT(count >= 0);
      world_.network.block(worker, side, count > 0);
    };
    if (up) change(Side::head, 1);
    if (down) change(Side::worker, 1);
    until(d, [this, change, up, down, worker = d.worker, resets = d.resets] {
      if (up) change(Side::head, -1);
      if (down) change(Side::worker, -1);
      if (resets) world_.network.reset_link(worker, "connection reset");
    });
  }

  void stall(const Disturbance& d) {
    const auto change = [this, worker = d.worker](int by) {
      int& count = data_blocked_[worker];
      count += by;
      MOTLEY_ASSERT(count >= 0);
      for (const Side side : {Side::head, Side::worker}) world_.network.block_data(worker, side, count > 0);
    };
    change(1);
    until(d, [this, change, worker = d.worker, resets = d.resets] {
      change(-1);
      if (resets) world_.network.reset_link(worker, "connection reset");
    });
  }

  void kill_head(const Disturbance& d) {
    if (!head_.alive()) return;
    head_.kill();
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      if (scenario_.workers[i].local && workers_[i]->running()) workers_[i]->kill(false);
    }
    until(d, [this] {
      head_.start();
      for (std::size_t i = 0; i < workers_.size(); ++i) {
        if (scenario_.workers[i].local && up_[i]) bring_up(i);
      }
    });
  }

  void freeze_local(bool freeze) {
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      if (!scenario_.workers[i].local || !workers_[i]->running() || workers_[i]->frozen() == freeze) continue;
      if (freeze) {
        workers_[i]->freeze();
      } else {
        workers_[i]->thaw();
      }
    }
  }

  const Scenario& scenario_;
  World world_;
  HeadNode head_;
  std::vector<std::unique_ptr<WorkerNode>> workers_;
  std::map<std::size_t, bool> up_;
  std::map<std::pair<std::size_t, Side>, int> blocked_;
  std::map<std::size_t, int> data_blocked_;
};

}  // namespace

Report simulate(const Scenario& scenario, const SimulationOptions& options) {
  Data data = make_data(scenario.run);
  Result<Reference> reference = make_reference(scenario.run, data);
  MOTLEY_ASSERT(reference.ok());
  return Simulation(scenario, std::move(data), *reference, options).run();
}

}  // namespace motley::sim

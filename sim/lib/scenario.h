#pragma once
// What a seed stands for: a run, the machines that do it, and what happens to them. A pure function of the seed. The
// head's own worker, if there is one, is worker 0; it lives and dies with the head.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "modes/pauses.h"
#include "plan/codec_cost.h"
#include "ps/spec.h"
#include "sim/faults.h"
#include "sim/network.h"

namespace motley::sim {

struct RunSetup {
  std::uint64_t seed = 0;
  std::uint64_t train_samples = 0, test_samples = 0;
  std::uint64_t features = 0, classes = 0;
  std::uint64_t global_batch = 0, grain = 1, steps = 0;
  std::uint64_t evaluate_every = 0;
  ps::OptimizerSpec optimizer;
  ps::ScheduleSpec schedule;
  double clip_norm = 0;
  bool clip_by_step_before = false;
  // In rounds: of so many local steps of `local_batch`, and global_batch is that of a round; 0: no rounds.
  std::uint64_t local_steps = 0, local_batch = 0;
  ps::OptimizerSpec outer{};
  bool rate_by_workers = false;
  bool overlap = false;
  bool skewed = false;  // the samples of a step come by class, so that each share is of some of them
};

struct WorkerSetup {
  bool local = false;  // in the head's process
  Duration joins_at{};
  double samples_per_second = 0;
  double jitter = 0;  // of the time of a micro-batch, as a fraction
  std::uint32_t micro_batch = 1;
  LinkProfile link;
  Fault fault = Fault::none;
  double faulty = 0;  // part of its leases
};

enum class Trouble : std::uint8_t {
  kill,          // the process dies; the other side hears of it. Comes back after `lasts`
  power,         // the machine dies without a word. Comes back after `lasts`
  freeze,        // stopped for `lasts`
  partition,     // both directions stall
  partition_up,  // only towards the head
  partition_down,
  stall_data,  // heartbeats go on, weights and gradients stall
  reset,       // the connections break
  slow,        // computes `factor` times as fast from now on
  poison,      // one contribution with a NaN
  leave,       // Ctrl-C
  step_aside,  // somebody uses the machine for `lasts`: hands over what is done and comes back
  head_kill,   // the coordinator dies and comes back from its disk after `lasts`
  head_freeze,
};
std::string_view to_word(Trouble trouble) noexcept;

struct Disturbance {
  Trouble trouble = Trouble::kill;
  std::size_t worker = 0;
  Duration at{};
  Duration lasts{};
  double factor = 1;
  bool resets = false;  // partitions: what stalled is lost when it ends
};

struct DiskSetup {
  std::uint64_t snapshot_every = 4;  // steps
  Duration write{};                  // a snapshot is durable after this
};

/// Between machines. Empty: auto.
struct Codecs {
  std::optional<wire::CodecId> gradients = wire::CodecId::fp32, weights = wire::CodecId::fp32;
  bool operator==(const Codecs&) const = default;
};
std::string_view to_word(std::optional<wire::CodecId> codec);
/// Of every machine, where that is open.
plan::EndCost wire_cost(const Codecs& codecs);

struct Scenario {
  std::uint64_t seed = 0;
  RunSetup run;
  std::vector<WorkerSetup> workers;
  std::vector<Disturbance> disturbances;  // by time
  NetworkOptions network;
  DiskSetup disk;
  bool checksums = true;
  Codecs codecs;
  modes::Pauses pauses = modes::Pauses::never;
  double verify = 0;  // part of the time in which shares are computed twice

  [[nodiscard]] bool faulty() const {
    return std::ranges::any_of(workers, [](const WorkerSetup& worker) { return worker.fault != Fault::none; });
  }
  /// What a worker makes wrong counts until it is found.
  [[nodiscard]] bool poisoned() const {
    return std::ranges::any_of(workers, [](const WorkerSetup& worker) { return worker.fault >= Fault::wrong; });
  }
  /// What a round comes to depends on its positions alone: nothing is remembered, nothing lost on the wire.
  [[nodiscard]] bool replays_rounds() const {
    return run.local_steps > 0 && codecs == Codecs{} && run.optimizer.groups[0].momentum == 0;
  }
  /// One worker, nothing goes wrong: the result must be the reference's, bit for bit.
  [[nodiscard]] bool undisturbed_single() const {
    return workers.size() == 1 && disturbances.empty() && (codecs == Codecs{} || workers[0].local);
  }
};

/// One of the workers beside the first is not as it should be; the others and what happens to them stay as they are.
void add_fault(Scenario& scenario);
/// The last worker lies from some lease on (negated or outdated), in this part of its leases, and nothing else goes
/// wrong: a long run of some workers, of whom the first may be the head's own, or of the head's own and one other.
void make_liar(Scenario& scenario, Fault fault, double often);
/// Its steps become rounds of so many local steps.
void make_rounds(Scenario& scenario, std::uint64_t local_steps, bool overlap = false);
/// `steps`: 0 leaves the number to the seed; so many that troubles would be rare bring more of them.
Scenario make_scenario(std::uint64_t seed, std::uint64_t steps = 0, Codecs codecs = {});
std::string describe(const Scenario& scenario);

}  // namespace motley::sim

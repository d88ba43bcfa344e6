#include "sim/scenario.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <tuple>

#include "base/philox.h"

namespace motley::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
constexpr std::uint64_t kScenarioStream = 1;
constexpr std::uint64_t kFaultStream = 2;

class Dice {
 public:
  explicit Dice(std::uint64_t seed, std::uint64_t stream = kScenarioStream) : random_(seed, stream) {}
  std::uint64_t between(std::uint64_t low, std::uint64_t high) { return low + random_.below(high - low + 1); }
  double uniform(double low, double high) { return low + (high - low) * random_.uniform(); }
  bool chance(double probability) { return random_.uniform() < probability; }
  Duration time(Duration low, Duration high) {
    return low + Duration(static_cast<std::int64_t>(random_.uniform() * static_cast<double>((high - low).count())));
  }
  std::uint64_t number() { return random_.next_u64(); }

 private:
  Philox random_;
};

RunSetup make_run(Dice& dice) {
  // One chunk; two large and a small one; three large and a small one.
  struct Size {
    std::uint64_t features, classes;
  };
  constexpr std::array<Size, 3> kSizes{{{12, 5}, {700, 30}, {1024, 40}}};
  const std::uint64_t roll = dice.between(0, 9);
  const Size size = kSizes[roll < 5 ? 0 : roll < 8 ? 1 : 2];
  RunSetup run;
  run.seed = dice.number();
  run.features = size.features;
  run.classes = size.classes;
  run.train_samples = dice.between(90, 400);
  run.test_samples = dice.chance(0.7) ? dice.between(10, 60) : 0;
  run.global_batch = dice.between(8, 96);
  run.grain = std::uint64_t{1} << dice.between(0, 4);
  run.steps = dice.chance(0.1) ? dice.between(20, 50) : dice.between(4, 16);
  run.evaluate_every = dice.chance(0.5) ? 0 : dice.between(1, 6);
  ps::GroupSpec group;
  group.lr = dice.uniform(0.05, 0.5) / static_cast<double>(run.features);  // the loss stays away from zero
  if (dice.chance(0.6)) group.momentum = 0.9;
  group.nesterov = group.momentum > 0 && dice.chance(0.5);
  if (dice.chance(0.4)) group.weight_decay = 1e-3;
  run.optimizer.groups = {group};
  if (dice.chance(0.4)) {
    run.schedule.kind = ps::ScheduleKind::cosine;
    run.schedule.warmup_steps = 2;
    run.schedule.total_steps = run.steps;
  }
  if (dice.chance(0.4)) run.clip_norm = dice.uniform(0.2, 2);
  run.clip_by_step_before = run.clip_norm > 0 && run.seed % 2 == 0;
  return run;
}

LinkProfile make_link(Dice& dice) {
  LinkProfile link;
  const std::uint64_t roll = dice.between(0, 9);
  if (roll < 5) {  // Ethernet
    link = {microseconds(100), microseconds(250), 0.001, 110e6};
  } else if (roll < 8) {  // Wi-Fi
    link = {milliseconds(1), milliseconds(6), 0.02, 8e6};
  } else {  // far away
    link = {milliseconds(20), milliseconds(45), 0.01, 2e6};
  }
  return link;
}

WorkerSetup make_worker(Dice& dice, const RunSetup& run, std::size_t index, Duration horizon) {
  WorkerSetup worker;
  worker.local = index == 0 && dice.chance(0.5);
  // A step of 0.1 s to 0.6 s on this machine alone, so that disturbances of seconds span a few steps.
  worker.samples_per_second = static_cast<double>(run.global_batch) / dice.uniform(0.1, 0.6);
  worker.jitter = dice.uniform(0, 0.4);
  worker.micro_batch = static_cast<std::uint32_t>(dice.between(1, std::max<std::uint64_t>(run.global_batch / 4, 1)));
  worker.link = worker.local ? LinkProfile{microseconds(1), microseconds(2), 0, 5e9} : make_link(dice);
  if (index > 0 && dice.chance(0.35)) worker.joins_at = dice.time(Duration(0), horizon);
  return worker;
}

Disturbance make_disturbance(Dice& dice, std::size_t workers, Duration horizon) {
  Disturbance d;
  const std::uint64_t roll = dice.between(0, 99);
  d.worker = dice.between(0, workers - 1);
  d.at = dice.time(milliseconds(100), horizon);
  d.lasts = dice.chance(0.5) ? dice.time(milliseconds(50), milliseconds(1500))
                             : dice.time(milliseconds(1500), milliseconds(7000));
  d.resets = dice.chance(0.4);
  struct Chance {
    std::uint64_t below;
    Trouble trouble;
  };
  constexpr std::array<Chance, 14> kChances{{{12, Trouble::kill},
                                             {19, Trouble::power},
                                             {33, Trouble::freeze},
                                             {42, Trouble::partition},
                                             {48, Trouble::partition_up},
                                             {54, Trouble::partition_down},
                                             {61, Trouble::stall_data},
                                             {68, Trouble::reset},
                                             {78, Trouble::slow},
                                             {81, Trouble::poison},
                                             {83, Trouble::leave},
                                             {86, Trouble::step_aside},
                                             {94, Trouble::head_kill},
                                             {100, Trouble::head_freeze}}};
  d.trouble = std::find_if(kChances.begin(), kChances.end(), [&](const Chance& c) { return roll < c.below; })->trouble;
  if (d.trouble == Trouble::slow) d.factor = dice.uniform(0.2, 2.5);
  return d;
}

void add_disturbances(Dice& dice, Scenario& scenario, Duration horizon) {
  constexpr std::uint64_t kStepsOfASeed = 50;
  std::uint64_t count = dice.chance(0.2) ? dice.between(8, 24) : dice.between(0, 7);
  if (scenario.run.steps > kStepsOfASeed)
    count = std::max<std::uint64_t>(count, 2) * scenario.run.steps / kStepsOfASeed;
  std::uint64_t poisons = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    Disturbance d = make_disturbance(dice, scenario.workers.size(), horizon);
    // Somebody must stay to finish the run; and what is not finite twice ends it.
    if (d.trouble == Trouble::leave && d.worker == 0) d.trouble = Trouble::freeze;
    if (d.trouble == Trouble::leave && scenario.run.steps > kStepsOfASeed) d.trouble = Trouble::step_aside;
    if (d.trouble == Trouble::poison && ++poisons > 1) continue;
    if (scenario.workers[d.worker].local) {  // lives in the head's process
      if (d.trouble == Trouble::kill || d.trouble == Trouble::power) d.trouble = Trouble::head_kill;
      if (d.trouble == Trouble::freeze) d.trouble = Trouble::head_freeze;
      if (d.trouble >= Trouble::partition && d.trouble <= Trouble::reset) continue;
    }
    scenario.disturbances.push_back(d);
  }
  std::sort(scenario.disturbances.begin(), scenario.disturbances.end(), [](const Disturbance& a, const Disturbance& b) {
    return std::tie(a.at, a.trouble, a.worker) < std::tie(b.at, b.trouble, b.worker);
  });
}

}  // namespace

std::string_view to_word(Trouble trouble) noexcept {
  constexpr std::array<std::string_view, 14> kWords{
      "kill",  "power loss", "freeze", "partition", "partition up", "partition down", "data stall",
      "reset", "speed",      "poison", "leave",     "step aside",   "head kill",      "head freeze"};
  return kWords[static_cast<std::size_t>(trouble)];
}

Scenario make_scenario(std::uint64_t seed, std::uint64_t steps, Codecs codecs) {
  Dice dice(seed);
  Scenario scenario;
  scenario.seed = seed;
  scenario.run = make_run(dice);
  if (steps > 0) scenario.run.steps = steps;
  scenario.codecs = codecs;
  scenario.network.seed = seed;
  scenario.network.own_background = dice.chance(0.3);
  if (dice.chance(0.15)) scenario.network.duplicate_probability = dice.uniform(0.01, 0.2);
  scenario.disk.snapshot_every = dice.between(1, 6);
  scenario.disk.write = 2 * dice.time(Duration(0), milliseconds(400));
  scenario.checksums = dice.chance(0.5);
  const bool quiet = dice.chance(0.1);
  const bool alone = dice.chance(quiet ? 0.7 : 0.1);
  const std::uint64_t workers = alone ? 1 : dice.between(2, 6);
  const Duration horizon = milliseconds(250) * static_cast<std::int64_t>(scenario.run.steps);
  for (std::uint64_t i = 0; i < workers; ++i) {
    scenario.workers.push_back(make_worker(dice, scenario.run, i, horizon));
  }
  if (!quiet) add_disturbances(dice, scenario, horizon);
  return scenario;
}

namespace {

constexpr std::uint64_t kStepsOfWild = 40, kStepsOfWrong = 160;

void make_longer(RunSetup& run, std::uint64_t steps) {
  run.steps = std::max(run.steps, steps);
  if (run.schedule.total_steps > 0) run.schedule.total_steps = run.steps;
}

}  // namespace

void add_fault(Scenario& scenario) {
  if (scenario.workers.size() < 2) return;
  Dice dice(scenario.seed, kFaultStream);
  WorkerSetup& worker = scenario.workers[dice.between(1, scenario.workers.size() - 1)];
  worker.fault = static_cast<Fault>(dice.between(1, kFaults));
  worker.faulty = dice.chance(0.5) ? 1 : dice.uniform(0.1, 1);
  if (dice.chance(0.4)) worker.fault = static_cast<Fault>(dice.between(kFaults - 2, kFaults));
  // Who is right is known to the head's own device, or two others.
  const bool looked_at = scenario.verify > 0 && scenario.run.local_steps == 0;
  if (worker.fault == Fault::wrong && (!looked_at || !scenario.workers.front().local)) worker.fault = Fault::wild;
  if (worker.fault == Fault::wrong) {
    // Second looks at the largest share are rarer.
    for (const WorkerSetup& other : scenario.workers)
      worker.samples_per_second = std::min(worker.samples_per_second, other.samples_per_second);
    make_longer(scenario.run, kStepsOfWrong);
  }
  if (worker.fault == Fault::wild) make_longer(scenario.run, kStepsOfWild);
  // The first one is there first and stays: a machine that is alone has nobody who could show that it is wrong.
  worker.joins_at = std::max(worker.joins_at, scenario.workers.front().joins_at + milliseconds(500));
  std::erase_if(scenario.disturbances, [](const Disturbance& d) {
    return d.trouble >= Trouble::head_kill || (d.worker == 0 && d.trouble != Trouble::slow);
  });
}

void make_liar(Scenario& scenario, Fault fault, double often) {
  RunSetup& run = scenario.run;
  Dice dice(scenario.seed, kFaultStream);
  constexpr std::uint64_t kBatch = 512, kSamples = 4096, kFeatures = 64, kClasses = 16;
  const double larger = static_cast<double>(kBatch) / static_cast<double>(run.global_batch);
  run.optimizer.groups[0].lr *= static_cast<double>(run.features) / static_cast<double>(kFeatures);
  run.features = kFeatures;
  run.classes = kClasses;
  run.global_batch = kBatch;
  run.train_samples = kSamples;
  run.test_samples = 0;
  scenario.disturbances.clear();
  if (run.schedule.total_steps > 0) run.schedule.total_steps = run.steps;
  while (scenario.workers.size() < 2) scenario.workers.push_back(scenario.workers.front());
  if (scenario.workers.size() == 2) scenario.workers.front().local = true;
  if (scenario.workers.front().local) scenario.workers.front().link = {microseconds(1), microseconds(2), 0, 5e9};
  for (WorkerSetup& worker : scenario.workers) {
    worker.samples_per_second *= larger;
    worker.micro_batch = static_cast<std::uint32_t>(dice.between(16, 64));
    worker.joins_at = std::min<Duration>(worker.joins_at, milliseconds(2000));
  }
  WorkerSetup& last = scenario.workers.back();
  last.local = false;
  last.fault = fault;
  last.faulty = often;
}

void make_rounds(Scenario& scenario, std::uint64_t local_steps, bool overlap) {
  RunSetup& run = scenario.run;
  run.local_steps = local_steps;
  run.local_batch = std::max<std::uint64_t>(1, run.global_batch / local_steps);
  run.global_batch = run.local_batch * local_steps;
  run.clip_by_step_before = false;
  run.schedule.total_steps *= local_steps;
  ps::GroupSpec outer{.lr = 0.6, .momentum = 0.9};
  outer.nesterov = true;
  run.outer.groups = {outer};
  run.rate_by_workers = true;
  run.overlap = overlap;
}

plan::EndCost wire_cost(const Codecs& codecs) {
  if (codecs.gradients && codecs.weights) return {};
  const plan::ByCodec coding{0, 0.1e-9, 0.1e-9, 0.1e-9};
  return {.sent = 1e-9,
          .received = 1e-9,
          .encode = coding,
          .decode_add = coding,
          .encode_delta = coding,
          .decode_delta = coding};
}

std::string_view to_word(std::optional<wire::CodecId> codec) { return codec ? codec::to_word(*codec) : "auto"; }

std::string describe(const Scenario& scenario) {
  std::ostringstream text;
  const RunSetup& run = scenario.run;
  text << "seed " << scenario.seed << ": " << run.steps << " steps of " << run.global_batch << " of "
       << run.train_samples << " samples (grain " << run.grain << "), " << run.features << " x " << run.classes
       << ", test " << run.test_samples << ", clip " << run.clip_norm
       << (run.clip_by_step_before ? " by the step before" : "") << ", duplicates "
       << scenario.network.duplicate_probability << ", gradients " << to_word(scenario.codecs.gradients) << ", weights "
       << to_word(scenario.codecs.weights) << "\n";
  for (std::size_t i = 0; i < scenario.workers.size(); ++i) {
    const WorkerSetup& w = scenario.workers[i];
    text << "  worker " << i << (w.local ? " (local)" : "") << ": " << w.samples_per_second
         << " samples/s, micro-batch " << w.micro_batch << ", joins at " << seconds(w.joins_at) << " s, delay "
         << seconds(w.link.delay_mean) * 1e3 << " ms, " << w.link.bytes_per_second / 1e6 << " MB/s";
    if (w.fault != Fault::none) text << ", faulty: " << to_word(w.fault) << " in " << w.faulty << " of its leases";
    text << "\n";
  }
  for (const Disturbance& d : scenario.disturbances) {
    text << "  " << seconds(d.at) << " s: " << to_word(d.trouble) << " of worker " << d.worker << " for "
         << seconds(d.lasts) << " s";
    if (d.trouble == Trouble::slow) text << ", factor " << d.factor;
    if (d.resets) text << ", ends with a reset";
    text << "\n";
  }
  return text.str();
}

}  // namespace motley::sim

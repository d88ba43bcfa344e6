#include "sim/simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

namespace motley::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string text_of(const Report& report) {
  std::string text;
  for (const std::string& failure : report.failures) text += failure + "\n";
  return text;
}

Report good(const Scenario& scenario, const SimulationOptions& options = {}) {
  Report report = simulate(scenario, options);
  EXPECT_TRUE(report.ok()) << text_of(report);
  return report;
}

class Seeds : public testing::TestWithParam<std::uint64_t> {};

TEST_P(Seeds, KeepTheirPromises) {
  constexpr std::uint64_t kBlock = 25;
  std::uint64_t trims = 0;
  for (std::uint64_t seed = GetParam(); seed < GetParam() + kBlock; ++seed) {
    const Report report = simulate(make_scenario(seed));
    EXPECT_TRUE(report.ok()) << text_of(report) << "replay: sim --seed " << seed << " --trace";
    trims += report.measured.trims;
  }
  EXPECT_GT(trims, 0U);
}

INSTANTIATE_TEST_SUITE_P(Fixed, Seeds, testing::Range<std::uint64_t>(1, 201, 25));

// One worker is not as it should be: the run ends with the weights of one machine, and no sound worker is turned away.
TEST_P(Seeds, AFaultyWorkerDoesNoHarm) {
  for (std::uint64_t seed = GetParam(); seed < GetParam() + 25; ++seed) {
    Scenario scenario = make_scenario(seed);
    add_fault(scenario);
    const Report report = simulate(scenario);
    EXPECT_TRUE(report.ok()) << text_of(report) << "replay: sim --seed " << seed << " --faulty --trace";
  }
}

Scenario three_workers();

// Its gradients have the usual size: second looks find it, and only the sound ones are left.
TEST(Simulation, WhoSendsWrongGradientsIsTurnedAway) {
  Scenario scenario = three_workers();
  scenario.run.steps = 120;
  scenario.verify = 1;
  scenario.workers[2].fault = Fault::wrong;
  scenario.workers[2].faulty = 1;
  const Report report = good(scenario);
  EXPECT_GE(report.lies, 3U);
  EXPECT_LE(report.lies, 60U);
}

using enum wire::CodecId;

class LossyCodecs : public testing::TestWithParam<Codecs> {};

// The machines fail as ever, what counts is counted once, and nobody computes with other weights than the head has.
TEST_P(LossyCodecs, KeepTheirPromises) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const Report report = simulate(make_scenario(seed, 0, GetParam()));
    EXPECT_TRUE(report.ok()) << text_of(report) << "replay: sim --seed " << seed << " --gradients "
                             << to_word(GetParam().gradients) << " --weights " << to_word(GetParam().weights)
                             << " --trace";
  }
}

// So long that machines come and go; each has another instruction set.
TEST_P(LossyCodecs, KeepReplicasTheSameBits) {
  const Scenario scenario = make_scenario(18, 300, GetParam());
  const Report report = good(scenario);
  EXPECT_GT(scenario.disturbances.size(), 10U);
  if (GetParam().weights) {
    EXPECT_EQ(report.deltas > 500, *GetParam().weights != fp32);
  }
}

INSTANTIATE_TEST_SUITE_P(Between, LossyCodecs,
                         testing::Values(Codecs{int8, fp32}, Codecs{fp32, int8}, Codecs{bf16, bf16}, Codecs{int8, int8},
                                         Codecs{int4, int4}, Codecs{std::nullopt, std::nullopt}),
                         [](const auto& param) {
                           return std::string(to_word(param.param.gradients)) + "_up_" +
                                  std::string(to_word(param.param.weights)) + "_down";
                         });

// Three workers of unequal speed on Ethernet, a step of about 0.2 s.
Scenario three_workers() {
  Scenario scenario;
  scenario.seed = 5;
  scenario.run.seed = 11;
  scenario.run.train_samples = 300;
  scenario.run.test_samples = 20;
  scenario.run.features = 700;
  scenario.run.classes = 30;
  scenario.run.global_batch = 64;
  scenario.run.grain = 4;
  scenario.run.steps = 30;
  scenario.run.evaluate_every = 10;
  ps::GroupSpec group;
  group.lr = 1e-4;
  group.momentum = 0.9;
  scenario.run.optimizer.groups = {group};
  scenario.disk.write = milliseconds(200);
  for (const double speed : {160.0, 100.0, 40.0}) {
    WorkerSetup worker;
    worker.samples_per_second = speed;
    worker.jitter = 0.1;
    worker.micro_batch = 4;
    worker.link = {std::chrono::microseconds(100), std::chrono::microseconds(200), 0, 110e6};
    scenario.workers.push_back(worker);
  }
  return scenario;
}

Disturbance trouble(Trouble what, std::size_t worker, Duration at, Duration lasts = {}) {
  Disturbance d;
  d.trouble = what;
  d.worker = worker;
  d.at = at;
  d.lasts = lasts;
  return d;
}

struct StepTimes {
  std::vector<double> seconds_between;
  double longest = 0;
};

// From the trace: how long the run stood still between two closed steps, whatever was broken.
StepTimes step_times(const Scenario& scenario, Report& report) {
  StepTimes times;
  double last = 0;
  SimulationOptions options;
  options.print = [&](const std::string& line) {
    if (line.find("closed step") == std::string::npos) return;
    const double at = std::stod(line);
    times.seconds_between.push_back(at - last);
    if (times.seconds_between.size() > 1) times.longest = std::max(times.longest, at - last);
    last = at;
  };
  report = simulate(scenario, options);
  return times;
}

TEST(Simulation, AnUndisturbedRunIsCloseToOneMachine) {
  const Report report = good(three_workers());
  EXPECT_LT(report.measured.loss_error, 1e-6);
  EXPECT_LT(report.measured.weights_error, 1e-6);
}

TEST(Simulation, OneWorkerAloneGivesTheBitsOfOneMachine) {
  Scenario scenario = three_workers();
  scenario.workers.resize(1);
  ASSERT_TRUE(scenario.undisturbed_single());
  const Report report = good(scenario);
  EXPECT_EQ(report.measured.loss_error, 0);
  EXPECT_EQ(report.measured.weights_error, 0);
}

Scenario with_local_worker() {
  Scenario scenario = three_workers();
  scenario.workers[0].local = true;
  scenario.workers[0].link = {std::chrono::microseconds(1), std::chrono::microseconds(2), 0, 5e9};
  return scenario;
}

TEST(Simulation, AWorkerOfTheHeadAloneMakesStepsWithoutAskingAndWithTheSameBits) {
  Scenario scenario = with_local_worker();
  scenario.workers.resize(1);
  const Report report = good(scenario);
  EXPECT_EQ(report.steps_delegated, scenario.run.steps - 3);
  EXPECT_EQ(report.measured.loss_error, 0);
  EXPECT_EQ(report.measured.weights_error, 0);
}

TEST(Simulation, TheRunMovesOverWhenAnotherWorkerComesAndBackWhenItGoes) {
  Scenario scenario = with_local_worker();
  scenario.workers.resize(2);
  scenario.workers[1].joins_at = seconds(4);
  scenario.disturbances = {trouble(Trouble::leave, 1, seconds(7))};
  const Report report = good(scenario);
  EXPECT_GT(report.steps_delegated, 10U);
  EXPECT_LT(report.steps_delegated, scenario.run.steps - 6);
}

TEST(Simulation, NothingIsLostWhenTheHeadIsKilledWhileItsWorkerIsAlone) {
  Scenario scenario = with_local_worker();
  scenario.workers.resize(1);
  scenario.disturbances = {trouble(Trouble::head_kill, 0, seconds(3), milliseconds(500))};
  const Report report = good(scenario);
  EXPECT_EQ(report.incarnations, 2U);
  EXPECT_EQ(report.measured.weights_error, 0);
}

TEST(Simulation, NaNInAStepMadeAloneIsAskedForAgainByLease) {
  Scenario scenario = with_local_worker();
  scenario.workers.resize(1);
  scenario.disturbances = {trouble(Trouble::poison, 0, seconds(3))};
  const Report report = good(scenario);
  EXPECT_GT(report.steps_delegated, 0U);
  EXPECT_EQ(report.measured.weights_error, 0);
}

TEST(Simulation, TheLossOfAWorkerCostsLessThanThreeSeconds) {
  for (const Trouble what : {Trouble::kill, Trouble::power, Trouble::freeze, Trouble::partition, Trouble::partition_up,
                             Trouble::partition_down, Trouble::reset, Trouble::stall_data}) {
    for (std::size_t worker = 0; worker < 3; ++worker) {
      Scenario scenario = three_workers();
      scenario.disturbances = {trouble(what, worker, milliseconds(2300), seconds(5))};
      Report report;
      const StepTimes times = step_times(scenario, report);
      EXPECT_TRUE(report.ok()) << to_word(what) << " of " << worker << ": " << text_of(report);
      EXPECT_LT(times.longest, 3) << to_word(what) << " of " << worker;
    }
  }
}

TEST(Simulation, AWorkerThatComesBackAndOneThatComesLateTakePart) {
  Scenario scenario = three_workers();
  scenario.workers[1].joins_at = seconds(2);
  scenario.disturbances = {trouble(Trouble::kill, 2, seconds(1), seconds(1))};
  SimulationOptions options;
  unsigned late = 0, back = 0;
  options.print = [&](const std::string& line) {
    if (line.find("computes at version") == std::string::npos || std::stod(line) < 3) return;
    if (line.find("worker 1") != std::string::npos) ++late;
    if (line.find("worker 2") != std::string::npos) ++back;
  };
  const Report report = good(scenario, options);
  EXPECT_GT(late, 3U);
  EXPECT_GT(back, 3U);
}

// In long micro-batches nothing can move before it is done.
TEST(Simulation, WorkThatMovesShortensTheStepInWhichAWorkerSlowsDown) {
  for (const std::size_t workers : {2U, 3U}) {  // the slow one has a partner; it has none
    Scenario scenario = three_workers();
    scenario.workers.resize(workers);
    Disturbance slow = trouble(Trouble::slow, workers - 1, seconds(3));
    slow.factor = 0.1;
    scenario.disturbances = {slow};
    for (WorkerSetup& worker : scenario.workers) {
      worker.samples_per_second = 100;
      worker.micro_batch = 2;
    }
    Report moved, whole;
    const StepTimes short_ones = step_times(scenario, moved);
    for (WorkerSetup& worker : scenario.workers) worker.micro_batch = 64;
    const StepTimes long_ones = step_times(scenario, whole);
    EXPECT_TRUE(moved.ok() && whole.ok()) << text_of(moved) << text_of(whole);
    EXPECT_GT(moved.measured.trims, 0U);
    if (workers == 2) {
      EXPECT_GT(moved.measured.raises, 0U);
    }
    EXPECT_EQ(whole.measured.trims, 0U);
    EXPECT_LT(short_ones.longest, 0.7 * long_ones.longest) << workers << " workers";
  }
}

TEST(Simulation, TheHeadComesBackFromItsDisk) {
  Scenario scenario = three_workers();
  scenario.disturbances = {trouble(Trouble::head_kill, 0, seconds(1), milliseconds(500)),
                           trouble(Trouble::head_kill, 0, seconds(3), seconds(4))};
  const Report report = good(scenario);
  EXPECT_EQ(report.incarnations, 3U);
}

TEST(Simulation, AWorkerAloneThatSendsNaNOnceIsAskedAgain) {
  Scenario scenario = three_workers();
  scenario.workers.resize(1);
  scenario.disturbances = {trouble(Trouble::poison, 0, seconds(1))};
  good(scenario);
}

TEST(Simulation, TheThirdNaNExcludes) {
  Scenario scenario = three_workers();
  for (int i = 1; i <= 3; ++i) scenario.disturbances.push_back(trouble(Trouble::poison, 1, seconds(i)));
  const Report report = simulate(scenario);
  ASSERT_EQ(report.failures.size(), 1U) << text_of(report);
  EXPECT_THAT(report.failures[0], testing::HasSubstr("worker 1 was turned away for good"));
}

TEST(Simulation, FramesThatComeTwiceChangeNothing) {
  Scenario scenario = three_workers();
  scenario.network.duplicate_probability = 0.5;
  const Report report = good(scenario);
  EXPECT_GT(report.duplicates, 100U);
}

TEST(Simulation, OneSeedReplaysEverything) {
  for (const std::uint64_t seed : {3U, 17U, 40U, 99U}) {
    const Report first = simulate(make_scenario(seed));
    SimulationOptions printing;
    printing.print = [](const std::string&) {};
    const Report again = simulate(make_scenario(seed));
    EXPECT_EQ(first.trace_hash, again.trace_hash);
    EXPECT_EQ(first.events, again.events);
    EXPECT_EQ(first.measured.weights_error, again.measured.weights_error);
  }
  EXPECT_NE(simulate(make_scenario(3)).trace_hash, simulate(make_scenario(17)).trace_hash);
}

TEST(Simulation, StepsCanBeGiven) {
  EXPECT_EQ(make_scenario(8, 23).run.steps, 23U);
  EXPECT_FALSE(describe(make_scenario(8)).empty());
}

// --- the checks can fail ---

struct Damage {
  Sabotage sabotage;
  std::string found;
  // Names the case; the default prints addresses, which change from run to run.
  friend std::ostream& operator<<(std::ostream& out, const Damage& damage) { return out << damage.found; }
};

class Checked : public testing::TestWithParam<Damage> {};

TEST_P(Checked, DamageIsFound) {
  SimulationOptions options;
  options.sabotage = GetParam().sabotage;
  const Report report = simulate(three_workers(), options);
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(text_of(report), testing::HasSubstr(GetParam().found));
}

INSTANTIATE_TEST_SUITE_P(All, Checked,
                         testing::Values(Damage{Sabotage::drop_range, "the committed ranges end at"},
                                         Damage{Sabotage::double_range, "a committed range starts at"},
                                         Damage{Sabotage::scale_loss, "one machine has"},
                                         Damage{Sabotage::spoil_gradient, "the final weights differ"},
                                         Damage{Sabotage::mix_versions, "weights of another version among them"},
                                         Damage{Sabotage::lose_step, "expected step 2"},
                                         Damage{Sabotage::hold_up, "the run stands at version"},
                                         Damage{Sabotage::slow_step, "s with nothing broken"}));

// So small beside the rest that the weights as a whole, and with coarse codecs the losses, do not show it.
TEST(Simulation, AnotherSignInASmallTensorIsFoundWithEachCodec) {
  for (const std::optional<wire::CodecId> codec : {std::optional(fp32), std::optional(bf16), std::optional(int8),
                                                   std::optional(int4), std::optional<wire::CodecId>()}) {
    Scenario scenario = three_workers();
    scenario.codecs = {codec, codec};
    EXPECT_EQ(text_of(good(scenario)), "") << to_word(codec);
    SimulationOptions options;
    options.sabotage = Sabotage::negate_bias;
    EXPECT_THAT(text_of(simulate(scenario, options)), testing::HasSubstr("from its beginning bias went"))
        << to_word(codec);
  }
}

class CheckedRounds : public testing::TestWithParam<Damage> {};

TEST_P(CheckedRounds, DamageIsFound) {
  Scenario scenario = three_workers();
  scenario.run.optimizer.groups[0].momentum = 0;
  make_rounds(scenario, 4);
  ASSERT_TRUE(scenario.replays_rounds());
  const Report sound = simulate(scenario);
  ASSERT_TRUE(sound.ok()) << text_of(sound);
  SimulationOptions options;
  options.sabotage = GetParam().sabotage;
  const Report report = simulate(scenario, options);
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(text_of(report), testing::HasSubstr(GetParam().found));
}

INSTANTIATE_TEST_SUITE_P(All, CheckedRounds,
                         testing::Values(Damage{Sabotage::spoil_gradient, "of the same round done again"},
                                         Damage{Sabotage::drop_range, "and ranges of"},
                                         Damage{Sabotage::double_range, "and ranges of"},
                                         Damage{Sabotage::mix_versions, "weights of another version among them"},
                                         Damage{Sabotage::lose_step, "expected step 2"},
                                         Damage{Sabotage::hold_up, "the run stands at version"}));

}  // namespace
}  // namespace motley::sim

// A paused run, and what it is told when it goes on.

#include <gmock/gmock.h>

#include "fixture.h"

namespace motley::engine {
namespace {

class CoordinatorPauses : public CoordinatorTest {
 protected:
  CoordinatorPauses() { options.pauses = modes::Pauses::eval_points; }  // 3 steps an epoch, 4 in all

  static SharedBytes text(std::string_view words) { return SharedBytes::copy_of(std::as_bytes(std::span(words))); }
  void resume(Resume resume) {
    resume.version = coordinator->server().version();
    coordinator->resume(resume, now);
    collect();
  }
  static std::vector<std::uint64_t> numbers(const Peer& peer) {
    std::vector<std::uint64_t> found;
    for (const wire::State& piece : peer.all<wire::State>()) found.push_back(piece.number);
    return found;
  }
};

TEST_F(CoordinatorPauses, NothingIsGrantedUntilItGoesOn) {
  make();
  Peer& peer = join(1);
  run();
  EXPECT_EQ(output.pauses, (std::vector<std::uint64_t>{3}));
  EXPECT_EQ(coordinator->waiting_for(), "waiting for the script, which looks at the run between two steps");
  pass_time(ms(500), {&peer});
  EXPECT_TRUE(peer.grants.empty());
  resume({});
  run();
  EXPECT_EQ(output.pauses, (std::vector<std::uint64_t>{3, 4})) << "the end of the run is an eval point";
  EXPECT_EQ(output.times_finished, 0);
  resume({});
  EXPECT_EQ(output.times_finished, 1);
  expect_exact(4);
}

TEST_F(CoordinatorPauses, LearningRatesHoldFromTheNextStepOn) {
  make();
  join(1);
  run();
  resume({.rates = std::vector<double>{0.125}});
  run();
  ASSERT_EQ(output.steps.size(), 4U);
  EXPECT_EQ(output.steps[2].learning_rate, 0.25);
  EXPECT_EQ(output.steps[3].learning_rate, 0.125);
}

TEST_F(CoordinatorPauses, StepsAreCutAsTheScriptSays) {
  options.train_samples = 100;
  options.global_batch = 40;
  options.steps = 6;
  options.epochs = 0;
  options.batch_changes = {{1, 50}, {2, 10}};
  make();
  join(1);
  run();
  EXPECT_EQ(output.pauses, (std::vector<std::uint64_t>{3}));
  resume({.batches = {{3, 20}, {4, 60}}});
  run();
  EXPECT_EQ(output.pauses, (std::vector<std::uint64_t>{3, 6}));
  std::vector<std::uint64_t> epochs, samples;
  for (const StepClosed& step : output.steps) {
    epochs.push_back(step.epoch);
    samples.push_back(step.samples);
    EXPECT_EQ(step.learning_rate, 0.25);
  }
  EXPECT_EQ(epochs, (std::vector<std::uint64_t>{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(samples, (std::vector<std::uint64_t>{40, 50, 10, 20, 60, 20}));
}

TEST_F(CoordinatorPauses, AResumeThatComesLateChangesNothing) {
  make();
  join(1);
  coordinator->resume({.version = 0, .rates = std::vector<double>{8}, .state = text("late")}, now);
  EXPECT_EQ(coordinator->server().learning_rate(0), 0.25);
  EXPECT_EQ(coordinator->state().number, 0U);
}

TEST_F(CoordinatorPauses, TheStateOfTheLossComesBeforeTheGrantThatNeedsIt) {
  options.state = {1, text("first")};
  make();
  Peer& peer = join(1);
  EXPECT_EQ(numbers(peer), (std::vector<std::uint64_t>{1}));
  ASSERT_EQ(peer.grants.size(), 1U);
  EXPECT_EQ(peer.grants[0].state, 1U);
  run();
  resume({.state = text("second")});
  EXPECT_EQ(numbers(peer), (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(peer.all<wire::State>().back().data.size(), 6U);
  ASSERT_EQ(peer.grants.size(), 1U);
  EXPECT_EQ(peer.grants[0].state, 2U);
}

TEST_F(CoordinatorPauses, WhoJoinsLaterGetsTheNewestStateAlone) {
  options.state = {4, text("first")};
  make();
  join(1);
  run();
  Peer& between = open(2);
  resume({.state = text("second")});
  EXPECT_TRUE(numbers(between).empty()) << "it is not admitted";
  ready(between);
  EXPECT_EQ(numbers(between), (std::vector<std::uint64_t>{5}));
  synced(between);
  EXPECT_EQ(numbers(join(3)), (std::vector<std::uint64_t>{5}));
}

TEST_F(CoordinatorPauses, WithoutAStateNothingIsSent) {
  make();
  Peer& peer = join(1);
  run();
  resume({});
  EXPECT_TRUE(numbers(peer).empty());
  EXPECT_EQ(peer.grants.at(0).state, 0U);
}

TEST_F(CoordinatorPauses, ADelegationHasTheState) {
  options.steps = 8;
  options.state = {1, text("first")};
  output.delegates = true;
  make();
  join(1, "local", true);
  run();
  ASSERT_FALSE(output.delegated.has_value()) << "the third step ends an epoch";
  resume({.state = text("second")});
  ASSERT_TRUE(output.delegated.has_value());
  EXPECT_EQ(output.delegated->state.number, 2U);
  EXPECT_EQ(output.delegated->state.bytes.size(), 6U);
  EXPECT_EQ(output.delegated->steps, 3U);
}

}  // namespace
}  // namespace motley::engine

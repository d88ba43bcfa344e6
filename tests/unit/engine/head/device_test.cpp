// Steps that the head's device makes while others contribute to them.

#include <limits>

#include "../../ps/accelerator.h"
#include "fixture.h"

namespace motley::engine {
namespace {

class CoordinatorDeviceTest : public CoordinatorTest {
 protected:
  CoordinatorDeviceTest() { options.steps = kSteps; }
  void begin_run(double clip_norm = 0) {
    options.min_workers = 2;
    there = std::make_shared<ps::AcceleratorServer>(card, test_server(layout, clip_norm));
    output.device = there;
    make(0, clip_norm);
  }
  void join_both() {
    join(1, {}, true);
    join(2);
  }
  // The frames of the first worker carry what its device keeps.
  void answer(SessionId session) {
    Peer& peer = peers[session];
    const wire::Grant grant = take(peer);
    begin(peer, grant);
    for (ChunkId chunk = 0; chunk < layout.chunks().size(); ++chunk) {
      wire::Frame frame = gradient_frame(peer, grant, chunk);
      if (session == 1 && there->settled()) frame.body = there->keep(frame.body.floats());
      deliver(peer, frame);
    }
    finish(peer, grant);
  }
  void run_all() {
    for (bool worked = true; worked;) {
      worked = false;
      for (const SessionId session : {1U, 2U}) {
        if (peers[session].grants.empty()) continue;
        answer(session);
        worked = true;
      }
    }
  }
  [[nodiscard]] std::size_t script_bytes() const {
    std::size_t bytes = 0;
    for (const Chunk& chunk : layout.chunks()) bytes += chunk.elements * sizeof(float);
    return bytes;
  }

  static constexpr std::uint64_t kSteps = 6;
  ps::Accelerator card;
  std::shared_ptr<ps::AcceleratorServer> there;
};

TEST_F(CoordinatorDeviceTest, ItsGradientStaysAndWeightsComeDownOnceAStep) {
  begin_run();
  join_both();
  EXPECT_TRUE(there->settled());
  const std::size_t settled = card.up;
  run_all();
  expect_exact(kSteps);
  EXPECT_EQ(card.down, kSteps * script_bytes());
  EXPECT_EQ(card.up - settled, kSteps * script_bytes());
}

TEST_F(CoordinatorDeviceTest, ItClipsAsTheHostDoes) {
  begin_run(2.0);
  join_both();
  run_all();
  expect_exact(kSteps, 2.0);
  for (const StepClosed& step : output.steps) EXPECT_GT(step.gradient_norm, 0);
}

TEST_F(CoordinatorDeviceTest, WithoutRoomTheHostMakesTheSteps) {
  begin_run();
  there->full = true;
  join_both();
  EXPECT_FALSE(there->settled());
  run_all();
  expect_exact(kSteps);
  EXPECT_EQ(card.down, 0U);
}

TEST_F(CoordinatorDeviceTest, AStepThatDoesNotFitIsMadeOnTheHost) {
  begin_run(2.0);
  join_both();
  answer(1);
  there->fails_to_sum = true;
  run_all();
  EXPECT_FALSE(there->settled());
  ASSERT_FALSE(output.warnings.empty());
  expect_exact(kSteps, 2.0);
}

TEST_F(CoordinatorDeviceTest, ADeviceThatFailsInAnUpdateEndsTheRun) {
  begin_run();
  join_both();
  answer(1);
  there->gone = true;
  answer(2);
  ASSERT_TRUE(output.error);
  EXPECT_NE(output.error->hint.find("--resume"), std::string::npos);
}

TEST_F(CoordinatorDeviceTest, WhatAWorkerThatIsLostHadComesFromTheDevice) {
  begin_run();
  join_both();
  answer(1);
  coordinator->session_closed(2, "gone", now);
  collect();
  run_all();
  EXPECT_EQ(coordinator->server().version(), kSteps);
  expect_exact(kSteps);
}

TEST_F(CoordinatorDeviceTest, AGradientThatIsNotFiniteIsComputedAgain) {
  begin_run();
  join_both();
  Peer& peer = peers[1];
  const wire::Grant grant = begun(peer);
  wire::Frame frame = gradient_frame(peer, grant, 0);
  std::vector<float> values(frame.body.floats().begin(), frame.body.floats().end());
  values[3] = std::numeric_limits<float>::quiet_NaN();
  frame.body = there->keep(values);
  deliver(peer, frame);
  run_all();
  expect_exact(kSteps);
}

TEST_F(CoordinatorDeviceTest, ForASecondLookItsShareComesDown) {
  options.steps = 30;
  options.verify = {.part = 1, .secret = 5, .after = 8};
  begin_run();
  join_both();
  run_all();
  EXPECT_TRUE(output.warnings.empty());
  std::uint64_t verified = 0;
  for (const StepClosed& step : output.steps) verified += step.verified;
  EXPECT_GT(verified, 0U);
  EXPECT_GT(card.down, options.steps * script_bytes());
  expect_exact(options.steps);
}

TEST_F(CoordinatorDeviceTest, DelegatedStepsBeginWithTheStateOfTheDevice) {
  output.delegates = true;
  begin_run();
  join_both();
  answer(1);
  answer(2);
  coordinator->session_closed(2, "gone", now);
  collect();
  while (!output.delegated && !peers[1].grants.empty()) answer(1);
  ASSERT_TRUE(output.delegated);
  EXPECT_FALSE(there->settled());
  const ps::Snapshot found = output.delegated->server->snapshot(), expected = reference(found.version).snapshot();
  for (ChunkId chunk = 0; chunk < layout.chunks().size(); ++chunk) {
    EXPECT_TRUE(std::ranges::equal(found.optimizer.at("momentum_buffer")[chunk].bytes(),
                                   expected.optimizer.at("momentum_buffer")[chunk].bytes()));
  }
}

TEST_F(CoordinatorDeviceTest, ItsStateComesDownWhenItIsAskedFor) {
  begin_run();
  join_both();
  answer(1);
  answer(2);
  ASSERT_EQ(coordinator->server().version(), 1U);
  EXPECT_TRUE(coordinator->server().handles().optimizer.empty());
  ASSERT_TRUE(coordinator->download_state().ok());
  const ps::Snapshot found = coordinator->server().snapshot(), expected = reference(1).snapshot();
  for (ChunkId chunk = 0; chunk < layout.chunks().size(); ++chunk) {
    EXPECT_TRUE(std::ranges::equal(found.optimizer.at("momentum_buffer")[chunk].bytes(),
                                   expected.optimizer.at("momentum_buffer")[chunk].bytes()));
  }
}

}  // namespace
}  // namespace motley::engine

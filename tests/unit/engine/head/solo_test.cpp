// Steps that a worker of the head makes by itself, as they come back.

#include "../../ps/server_device_optimizer.h"
#include "engine/local/soloist.h"
#include "fixture.h"

namespace motley::engine {
namespace {

constexpr std::uint64_t kSteps = 9, kByLease = 3;  // of these

class CoordinatorSoloTest : public CoordinatorTest {
 protected:
  CoordinatorSoloTest() {
    options.steps = kSteps;
    output.delegates = true;
    make();
    Peer& peer = join(1, "one", true);
    for (std::uint64_t i = 0; i < kByLease; ++i) work(peer);
  }
  /// What was delegated, on a device of its own.
  void settle() {
    ASSERT_TRUE(output.delegated);
    device.emplace(test_server(layout));
    soloist.emplace(*output.delegated);
    ASSERT_TRUE(soloist->settle(&*device));
  }
  /// Makes so many steps; with the last come the weights if `downloaded`.
  void step(int count, bool downloaded) {
    for (int i = 0; i < count; ++i) {
      const StepRange pass = soloist->pass();
      const auto weight = static_cast<double>(pass.count);
      soloist->begin(pass.count, weight, 0);
      device->loss_sum = loss_of(pass.order_first, pass.count);
      for (ChunkId chunk = 0; chunk < layout.chunks().size(); ++chunk)
        device->sums[chunk] = gradient_sum(layout.chunks()[chunk], pass.order_first, pass.count);
      ASSERT_TRUE(soloist->took({pass.count, weight, 0, 0}).ok());
      DelegatedStep made = soloist->finish(0.5, now).value();
      if (downloaded && i + 1 == count) made.after = soloist->download().value();
      coordinator->delegated_step(1, made, now);
    }
  }
  void end(bool downloaded, const std::optional<Error>& failure = {}) {
    DelegationEnd over{.number = soloist->number(), .failure = failure, .after = {}};
    if (downloaded) over.after = soloist->download().value();
    coordinator->delegation_ended(1, over, now);
    collect();
  }
  [[nodiscard]] std::uint64_t version() const { return coordinator->server().version(); }

  std::optional<ps::ServerDeviceOptimizer> device;
  std::optional<Soloist> soloist;
};

TEST_F(CoordinatorSoloTest, StepsOnADeviceCountWhenTheirWeightsCome) {
  settle();
  step(2, false);
  EXPECT_EQ(version(), kByLease);
  EXPECT_EQ(output.steps.size(), kByLease);
  step(2, true);
  EXPECT_EQ(output.steps.size(), kByLease + 4);
  expect_exact(kByLease + 4);
  step(2, false);
  end(true);
  expect_exact(kSteps);
  EXPECT_EQ(output.times_finished, 1);
}

TEST_F(CoordinatorSoloTest, AStepOnADeviceThatTakesItsTimeIsNotOverdue) {
  settle();
  for (int i = 0; i < 4; ++i) {
    now += std::chrono::seconds(9);
    step(1, false);
    coordinator->tick(now);
  }
  end(true, Error{ErrorCode::diverged, "no number", ""});
  EXPECT_EQ(version(), kByLease + 4);
}

TEST_F(CoordinatorSoloTest, StepsOfADeviceThatIsGoneAreMadeAgainByLease) {
  settle();
  step(2, true);
  step(3, false);
  end(false, Error{ErrorCode::internal, "the device is gone", ""});
  EXPECT_EQ(version(), kByLease + 2);
  ASSERT_FALSE(output.warnings.empty());
  EXPECT_NE(output.warnings.back().find("it and the 3 before it are made again by lease"), std::string::npos);
  run_exact(kSteps);
}

}  // namespace
}  // namespace motley::engine

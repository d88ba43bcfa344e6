// Contributions that are not finite or do not agree. After each the weights are those of one undisturbed machine.

#include <limits>

#include "coordinator_disturbed.h"

namespace motley::engine {
namespace {

class CoordinatorPoison : public CoordinatorDisturbed {
 protected:
  void poison(Peer& peer, const wire::Grant& grant, ChunkId chunk) {
    std::vector<float> values = gradient_sum(layout.chunks()[chunk], grant.pass_first + grant.first, grant.count);
    values[values.size() / 2] = std::numeric_limits<float>::quiet_NaN();
    deliver(peer, gradient_frame(peer, grant, chunk, values));
  }
};

TEST_F(CoordinatorPoison, GoesToAnotherWorkerWhoDecides) {
  two();
  const wire::Grant grant = take(*a);
  begin(*a, grant);
  push(*a, grant, 0);
  poison(*a, grant, 1);
  EXPECT_TRUE(a->grants.empty());
  EXPECT_EQ(positions(*b), 16u);
  ASSERT_FALSE(output.warnings.empty());
  EXPECT_NE(output.warnings[0].find("w1"), std::string::npos);
  run();
  expect_exact(4);
  EXPECT_FALSE(output.error.has_value());
}

TEST_F(CoordinatorPoison, ThreeStrikesExclude) {
  two();
  for (int strike = 0; strike < 3; ++strike) {
    ASSERT_EQ(coordinator->workers(), 2u);
    const wire::Grant grant = take(*a);
    begin(*a, grant);
    poison(*a, grant, 0);
    while (!b->grants.empty() && b->grants[0].version == grant.version) work(*b);
  }
  EXPECT_EQ(coordinator->workers(), 1u);
  EXPECT_EQ(output.closed.at(1).code, "excluded");
  EXPECT_EQ(events_of("w1").back(), WorkerEvent::excluded);
  open(9, "w1");
  ready(peers[9]);
  EXPECT_EQ(output.closed.at(9).code, "excluded") << "reconnecting does not shed strikes";
  run();
  expect_exact(4);
}

TEST_F(CoordinatorPoison, ALoneWorkerTriesAgainItself) {
  make();
  Peer& only = join(1);
  const wire::Grant grant = take(only);
  begin(only, grant);
  poison(only, grant, 2);
  ASSERT_EQ(only.grants.size(), 1u);
  run();
  expect_exact(4);
}

TEST_F(CoordinatorPoison, TwiceEndsTheRun) {
  two();
  const wire::Grant grant = take(*a);
  poison(*a, grant, 1);  // before its Begin
  while (!b->grants.empty() && !output.error) {
    const wire::Grant mine = take(*b);
    begin(*b, mine);
    if (mine.first == grant.first) poison(*b, mine, 1);
  }
  ASSERT_TRUE(output.error.has_value());
  EXPECT_EQ(output.error->code, ErrorCode::diverged);
  EXPECT_NE(output.error->message.find("positions 0 to 7"), std::string::npos);
  EXPECT_EQ(output.times_finished, 0);
  EXPECT_EQ(output.closed.at(1).code, "diverged");
}

TEST_F(CoordinatorPoison, AChunkThatWasRefusedBecauseOfItIsComputedAgain) {
  two();
  const wire::Grant grant = take(*a);
  begin(*a, grant);
  push(*a, grant, 0);
  pass_time(std::chrono::seconds(61), {a, b});
  Peer& c = join(3);
  pass_time(ms(100), {a, b, &c});
  ASSERT_FALSE(c.grants.empty()) << "both are overdue";
  const wire::Grant again = take(c);
  ASSERT_EQ(again.first, grant.first);
  begin(c, again);
  push(c, again, 0);  // not needed: the first one is there
  poison(*a, grant, 1);
  for (ChunkId chunk = 1; chunk < layout.chunks().size(); ++chunk) push(c, again, chunk);
  run();
  expect_exact(4);
}

TEST_F(CoordinatorPoison, ALossThatIsNotFiniteIsPoison) {
  two();
  const wire::Grant grant = take(*a);
  say(*a, wire::Begin{grant.pass, grant.lease, grant.first, grant.count, 8, std::numeric_limits<double>::infinity()});
  EXPECT_EQ(positions(*b), 16u);
  run();
  expect_exact(4);
}

TEST_F(CoordinatorPoison, AfterAChunkWasSummedOnlyTheOthersAreComputedAgain) {
  two();
  work(*b);
  const wire::Grant grant = take(*a);
  begin(*a, grant);
  push(*a, grant, 0);
  EXPECT_EQ(b->weights[1].size(), 1u);
  poison(*a, grant, 1);
  EXPECT_EQ(positions(*b), 8u);
  run();
  expect_exact(4);
}

TEST_F(CoordinatorPoison, AReplacementMustDeclareTheSameWeight) {
  two();
  const wire::Grant grant = take(*a);
  begin(*a, grant);
  push(*a, grant, 0);
  work(*b);
  Peer& c = join(3);
  lose(*a);
  Peer& liar = b->grants.empty() ? c : *b;
  const wire::Grant again = take(liar);
  say(liar, wire::Begin{again.pass, again.lease, again.first, again.count, 99, 0});
  EXPECT_FALSE(output.warnings.empty());
  run();
  expect_exact(4);
}

TEST_F(CoordinatorDisturbed, AWorkerThatCannotComputeIsStruck) {
  two();
  for (int strike = 0; strike < 3; ++strike) {
    const wire::Grant grant = take(*a);
    say(*a, wire::Failed{grant.pass, grant.lease, "out of memory"});
    while (!b->grants.empty() && b->grants[0].version == grant.version) work(*b);
  }
  EXPECT_EQ(events_of("w1").back(), WorkerEvent::excluded);
  run();
  expect_exact(4);
}

}  // namespace
}  // namespace motley::engine

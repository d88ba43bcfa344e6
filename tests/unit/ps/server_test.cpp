#include "ps/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "server_fixture.h"

namespace motley::ps {
namespace {

using testing::HasSubstr;

TEST(Server, SumsInOrderAndDivides) {
  Server server = made(sgd());
  const Flat before = flat_weights(server);
  const Chunk chunk = server.layout().chunks()[0];
  const Flat first(chunk.elements, 1e8F);
  const Flat second(chunk.elements, -1e8F);
  const Flat third(chunk.elements, 3);
  const std::vector<std::span<const float>> parts{first, second, third};
  server.reduce(0, parts, 4, 7);
  EXPECT_EQ(server.gradient(0).floats()[5], 0.75F);  // any other order loses the 3
  const SharedBytes after = server.apply(0);
  EXPECT_EQ(after.floats()[5], before[5] - 0.5F * 0.75F);
}

TEST(Server, GivesTheNormsOfPartsWhereAsked) {
  for (const double clip_norm : {0.0, 1.0}) {
    Server plain = made(sgd(), clip_norm);
    Server server = made(sgd(), clip_norm);
    const Chunk chunk = server.layout().chunks()[0];
    const Flat first = noise(layout(), 2);
    const Flat second = noise(layout(), 3);
    const std::vector<std::span<const float>> parts{of(first, chunk), of(second, chunk)};
    std::vector<double> squares{10, 20};  // what chunks before have added
    const double mean = server.reduce(0, parts, 4, 4, squares);
    EXPECT_EQ(plain.reduce(0, parts, 4, 4), 0);
    std::vector<double> expected{10, 20};
    double expected_mean = 0;
    for (std::size_t i = 0; i < chunk.elements; ++i) {
      const double a = parts[0][i];
      const double b = parts[1][i];
      expected[0] += a * a;
      expected[1] += b * b;
      expected_mean += (a + b) * (a + b) / 16;
    }
    EXPECT_NEAR(squares[0], expected[0], 1e-5 * expected[0]);
    EXPECT_NEAR(squares[1], expected[1], 1e-5 * expected[1]);
    EXPECT_NEAR(mean, expected_mean, 1e-5 * expected_mean);
  }
}

TEST(Server, WeightsChangeOnlyWhenTheStepIsFinished) {
  Server server = made(adamw());
  const Flat before = flat_weights(server);
  const Flat sum = noise(server.layout(), 2);
  const auto chunks = server.layout().chunks();
  for (ChunkId c = 0; c < chunks.size(); ++c) {
    const auto part = of(sum, chunks[c]);
    server.reduce(c, {&part, 1}, 2, 2);
    server.apply(c);
    EXPECT_EQ(flat_weights(server), before);
    EXPECT_EQ(server.version(), 0U);
  }
  server.finish_step();
  EXPECT_EQ(server.version(), 1U);
  EXPECT_NE(flat_weights(server), before);
}

TEST(Server, ASnapshotIsNotTouchedByLaterSteps) {
  Server server = made(sgd(0.9));
  step(server, noise(layout(), 2));
  const Snapshot snapshot = server.snapshot();
  const float weight = snapshot.weights[0].floats()[0];
  const float momentum = snapshot.optimizer.at("momentum_buffer")[0].floats()[0];
  for (std::uint64_t i = 0; i < 3; ++i) step(server, noise(layout(), 3 + i));
  EXPECT_EQ(snapshot.weights[0].floats()[0], weight);
  EXPECT_EQ(snapshot.optimizer.at("momentum_buffer")[0].floats()[0], momentum);
}

TEST(Server, ResumesBitForBit) {
  for (const auto& optimizer : {sgd(), sgd(0.9), adamw()}) {
    Server whole = made(optimizer, 1);
    for (std::uint64_t i = 0; i < 3; ++i) step(whole, noise(layout(), 10 + i));
    auto resumed = Server::make(layout(), optimizer, {}, 1, whole.snapshot());
    ASSERT_TRUE(resumed.ok()) << resumed.error().message;
    EXPECT_EQ(resumed->version(), 3U);
    for (std::uint64_t i = 3; i < 6; ++i) {
      step(whole, noise(layout(), 10 + i));
      step(*resumed, noise(layout(), 10 + i));
    }
    EXPECT_EQ(flat_weights(whole), flat_weights(*resumed));
  }
}

TEST(Server, GoesOnAtVersionZeroFromStepsMadeBefore) {
  for (OptimizerSpec optimizer : {sgd(0.9), adamw()}) {
    optimizer.groups[0].dampening = optimizer.kind == OptimizerKind::sgd ? 0.5 : 0;  // the first step has none
    Server whole = made(optimizer);
    for (std::uint64_t i = 0; i < 3; ++i) step(whole, noise(layout(), 10 + i));
    Snapshot begun = whole.snapshot();
    begun.version = 0;
    optimizer.updates_before = 3;
    auto fresh = Server::make(layout(), optimizer, {}, 0, begun);
    ASSERT_TRUE(fresh.ok()) << fresh.error().message;
    EXPECT_EQ(fresh->version(), 0U);
    Server fork = fresh->fork();
    step(whole, noise(layout(), 13));
    step(*fresh, noise(layout(), 13));
    step(fork, noise(layout(), 13));
    EXPECT_EQ(flat_weights(whole), flat_weights(*fresh));
    EXPECT_EQ(flat_weights(whole), flat_weights(fork));
  }
}

TEST(Server, MovesBatchNormStatistics) {
  Server server = made(sgd());
  const ChunkId id = 4;
  const Chunk chunk = server.layout().chunks()[id];
  ASSERT_EQ(chunk.kind, ChunkKind::statistics);
  const SharedBytes before = server.weights(id);
  // Two workers, 3 and 1 samples, with means 2 and 6 and variances 1 and 5: together mean 3 and variance 5.
  Flat first(chunk.elements);
  Flat second(chunk.elements);
  first[0] = 3 * 2;
  first[64] = 3 * (1 + 4);
  second[0] = 1 * 6;
  second[64] = 1 * (5 + 36);
  const std::vector<std::span<const float>> parts{first, second};
  server.reduce(id, parts, 999, 4);
  const SharedBytes after = server.apply(id);
  EXPECT_FLOAT_EQ(after.floats()[0], 0.9F * before.floats()[0] + 0.1F * 3);
  EXPECT_FLOAT_EQ(after.floats()[64], 0.9F * 1 + 0.1F * 5);
  EXPECT_FLOAT_EQ(after.floats()[65], 0.9F * 1);  // all inputs equal: variance zero, never below
}

TEST(Server, PaddingStaysZero) {
  GroupSpec harsh;
  harsh.eps = 0;  // 0 / 0 in the padding, if it were computed with
  Server server = *Server::make(layout(), {OptimizerKind::adam, {harsh, harsh}}, {}, 0, start(layout()));
  Flat sum = noise(layout(), 2);
  const auto in_padding = [&server](std::uint64_t offset) {
    for (const Placement& p : server.layout().placements()) {
      if (offset >= p.offset && offset < p.offset + p.elements) return false;
    }
    return true;
  };
  std::size_t padding = 0;
  for (std::uint64_t i = 0; i < sum.size(); ++i) {
    if (in_padding(i)) sum[i] = std::numeric_limits<float>::quiet_NaN();  // what a careless worker may leave there
  }
  for (int i = 0; i < 2; ++i) step(server, sum);
  const Flat weights = flat_weights(server);
  for (std::uint64_t i = 0; i < weights.size(); ++i) {
    ASSERT_TRUE(std::isfinite(weights[i])) << i;
    if (!in_padding(i)) continue;
    EXPECT_EQ(weights[i], 0);
    ++padding;
  }
  EXPECT_GT(padding, 0U);
}

TEST(Server, GroupsHaveTheirOwnRates) {
  OptimizerSpec optimizer = sgd();
  optimizer.groups[1].lr = 0;
  Server server = made(optimizer);
  const Flat before = flat_weights(server);
  step(server, noise(layout(), 2));
  const Flat after = flat_weights(server);
  EXPECT_NE(after[19'999], before[19'999]);  // last element of "a"
  EXPECT_EQ(after[20'032], before[20'032]);  // first element of "b", in the same chunk
  EXPECT_EQ(server.layout().placements()[1].offset, 20'032U);
}

TEST(Server, AGroupWithoutMomentumBesideOneWithIt) {
  OptimizerSpec optimizer = sgd(0.9);
  optimizer.groups[1].momentum = 0;
  Server mixed = made(optimizer);
  Server plain = made(sgd());
  for (std::uint64_t i = 0; i < 2; ++i) {
    step(mixed, noise(layout(), 2 + i));
    step(plain, noise(layout(), 2 + i));
  }
  EXPECT_NE(flat_weights(mixed)[0], flat_weights(plain)[0]);
  EXPECT_EQ(flat_weights(mixed)[20'032], flat_weights(plain)[20'032]);
  EXPECT_EQ(mixed.snapshot().optimizer.at("momentum_buffer")[1].floats()[20'032 - 16'384], 0);
}

std::string refusal(const OptimizerSpec& optimizer, const Snapshot& snapshot, ScheduleSpec schedule = {},
                    double clip_norm = 0) {
  auto server = Server::make(layout(), optimizer, schedule, clip_norm, snapshot);
  if (server.ok()) return "accepted";
  EXPECT_EQ(server.error().code, ErrorCode::input);
  EXPECT_FALSE(server.error().hint.empty());
  return server.error().message;
}

TEST(Server, RefusesSnapshotsOfAnotherModelOrOptimizer) {
  Snapshot short_one = start(layout());
  short_one.weights.pop_back();
  EXPECT_THAT(refusal(sgd(), short_one), HasSubstr("holds 4 chunks of weights, expected 5"));
  Snapshot thin = start(layout());
  thin.weights[3] = thin.weights[3].slice(0, 4);
  EXPECT_THAT(refusal(sgd(), thin), HasSubstr("chunk 3 of the weights has 4 bytes"));

  Server trained = made(adamw());
  step(trained, noise(layout(), 2));
  EXPECT_THAT(refusal(sgd(0.9), trained.snapshot()), HasSubstr("'exp_avg', which this optimizer does not use"));
  Snapshot bare = trained.snapshot();
  bare.optimizer.clear();
  EXPECT_THAT(refusal(adamw(), bare), HasSubstr("version 1 holds 0 chunks of optimizer state 'exp_avg'"));
  Snapshot half = trained.snapshot();
  half.optimizer["exp_avg_sq"][0] = {};
  EXPECT_THAT(refusal(adamw(), half), HasSubstr("chunk 0 of 'exp_avg_sq' has 0 bytes"));
  EXPECT_EQ(refusal(adamw(), trained.snapshot()), "accepted");
}

TEST(Server, RefusesSpecificationsTorchRefuses) {
  const auto with = [](OptimizerKind kind, auto change) {
    GroupSpec group;
    change(group);
    return refusal({kind, {group, group}}, start(layout()));
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(with(OptimizerKind::sgd, [nan](auto& g) { g.lr = nan; }), HasSubstr("optimizer.lr is nan"));
  EXPECT_THAT(with(OptimizerKind::sgd, [](auto& g) { g.momentum = -1; }), HasSubstr("optimizer.momentum"));
  EXPECT_THAT(with(OptimizerKind::sgd, [](auto& g) { g.nesterov = true; }), HasSubstr("nesterov needs momentum"));
  EXPECT_THAT(with(OptimizerKind::adam, [](auto& g) { g.beta1 = 1; }), HasSubstr("optimizer.beta1"));
  EXPECT_THAT(with(OptimizerKind::adamw, [](auto& g) { g.eps = -1; }), HasSubstr("optimizer.eps"));
  EXPECT_THAT(with(OptimizerKind::adamw, [](auto& g) { g.weight_decay = -1; }), HasSubstr("weight_decay"));
  EXPECT_THAT(refusal({OptimizerKind::sgd, {}}, start(layout())), HasSubstr("no parameter group"));
  EXPECT_THAT(refusal({OptimizerKind::sgd, {{}}}, start(layout())), HasSubstr("'b' is in parameter group 1"));
  ScheduleSpec cosine{.kind = ScheduleKind::cosine, .total_steps = 0};
  EXPECT_THAT(refusal(sgd(), start(layout()), cosine), HasSubstr("schedule.total_steps"));
  EXPECT_THAT(refusal(sgd(), start(layout()), {}, nan), HasSubstr("clip_norm"));
}

TEST(Server, CorrectsTheBiasByTheStepsThatItsStateHasSeen) {
  const Layout shape = layout();
  for (const bool anew : {false, true}) {
    Server through = made(adamw()), skipped = made(adamw());
    step(through, noise(shape, 2));
    step(skipped, noise(shape, 2));
    ASSERT_TRUE(skipped.rebase(40, chunked(shape, flat_weights(through)), anew).ok());
    if (anew) {
      ASSERT_TRUE(through.rebase(0, chunked(shape, flat_weights(through)), anew).ok());
    }
    step(through, noise(shape, 3));
    step(skipped, noise(shape, 3));
    EXPECT_EQ(skipped.version(), 41U);
    EXPECT_EQ(flat_weights(through), flat_weights(skipped)) << anew;
    Server fork = skipped.fork();
    step(fork, noise(shape, 4));
    step(through, noise(shape, 4));
    skipped.adopt(fork.snapshot());
    EXPECT_EQ(flat_weights(through), flat_weights(skipped)) << anew;
    step(through, noise(shape, 5));
    step(skipped, noise(shape, 5));
    EXPECT_EQ(flat_weights(through), flat_weights(skipped)) << anew;
  }
}

}  // namespace
}  // namespace motley::ps

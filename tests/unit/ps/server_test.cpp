#include "ps/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/philox.h"

namespace motley::ps {
namespace {

using testing::HasSubstr;
using Flat = std::vector<float>;

LayoutEntry entry(std::string name, std::vector<std::int64_t> shape, std::uint32_t group = 0) {
  LayoutEntry result;
  result.name = std::move(name);
  result.shape = std::move(shape);
  result.group = group;
  return result;
}

LayoutEntry statistic(std::string name, TensorKind kind, float momentum) {
  LayoutEntry result = entry(std::move(name), {3});
  result.kind = kind;
  result.momentum = momentum;
  return result;
}

/// Three large chunks, one of which holds parts of two tensors of different groups, a small one, and statistics.
Layout layout() {
  return *Layout::make({entry("a", {20'000}), entry("b", {150, 133}, 1), entry("bias", {10}, 1),
                        statistic("mean", TensorKind::running_mean, 0.1F),
                        statistic("var", TensorKind::running_var, 0.1F)});
}

/// Noise in the tensors, zero in the padding.
Flat noise(const Layout& shape, std::uint64_t seed) {
  Flat flat(shape.flat_elements());
  Philox random(seed);
  for (const Placement& p : shape.placements()) {
    for (std::uint64_t i = 0; i < p.elements; ++i) flat[p.offset + i] = static_cast<float>(random.gaussian());
  }
  return flat;
}

std::span<const float> of(const Flat& flat, const Chunk& chunk) { return {flat.data() + chunk.offset, chunk.elements}; }

std::vector<SharedBytes> chunked(const Layout& shape, const Flat& flat) {
  std::vector<SharedBytes> chunks;
  for (const Chunk& chunk : shape.chunks()) chunks.push_back(SharedBytes::copy_of(std::as_bytes(of(flat, chunk))));
  return chunks;
}

Flat flat_weights(const Server& server) {
  Flat flat;
  for (ChunkId c = 0; c < server.layout().chunks().size(); ++c) {
    const SharedBytes bytes = server.weights(c);
    flat.insert(flat.end(), bytes.floats().begin(), bytes.floats().end());
  }
  return flat;
}

Snapshot start(const Layout& shape) {
  Flat flat = noise(shape, 1);
  for (const Placement& p : shape.placements()) {
    if (shape.entries()[p.entry].kind == TensorKind::running_var) {
      for (std::uint64_t i = 0; i < p.elements; ++i) flat[p.offset + i] = 1;
    }
  }
  return {0, chunked(shape, flat), {}};
}

OptimizerSpec adamw() {
  GroupSpec group;
  group.weight_decay = 0.01;
  return {OptimizerKind::adamw, {group, group}};
}

OptimizerSpec sgd(double momentum = 0) {
  GroupSpec group;
  group.lr = 0.5;
  group.momentum = momentum;
  return {OptimizerKind::sgd, {group, group}};
}

Server made(const OptimizerSpec& optimizer, double clip_norm = 0) {
  auto server = Server::make(layout(), optimizer, {}, clip_norm, start(layout()));
  EXPECT_TRUE(server.ok()) << (server.ok() ? "" : server.error().message);
  return *std::move(server);
}

/// One step from a gradient sum of weight and samples 2; its final gradients.
std::vector<SharedBytes> step(Server& server, const Flat& sum) {
  const auto chunks = server.layout().chunks();
  for (ChunkId c = 0; c < chunks.size(); ++c) {
    const auto part = of(sum, chunks[c]);
    server.reduce(c, {&part, 1}, 2, 2);
  }
  if (server.clips()) server.clip();
  std::vector<SharedBytes> gradients;
  for (ChunkId c = 0; c < chunks.size(); ++c) {
    server.apply(c);
    gradients.push_back(server.gradient(c));
  }
  server.finish_step();
  return gradients;
}

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

TEST(Server, RedoRepeatsAStep) {
  for (const double clip_norm : {0.0, 0.5}) {
    Server server = made(adamw(), clip_norm);
    Server copy = made(adamw(), clip_norm);
    for (std::uint64_t i = 0; i < 3; ++i) {
      auto gradients = step(server, noise(layout(), 20 + i));
      // As read from a log: at an address where no float may lie.
      std::vector<std::byte> odd(gradients[0].size() + 1);
      std::copy(gradients[0].bytes().begin(), gradients[0].bytes().end(), odd.begin() + 1);
      gradients[0] = SharedBytes::copy_of(odd).slice(1, gradients[0].size());
      ASSERT_TRUE(copy.redo(gradients).ok());
    }
    EXPECT_EQ(copy.version(), 3U);
    EXPECT_EQ(flat_weights(copy), flat_weights(server));
  }
}

TEST(Server, RedoRefusesWrongSizes) {
  Server server = made(sgd());
  Server other = made(sgd());
  auto gradients = step(other, noise(layout(), 1));
  gradients[1] = gradients[1].slice(0, 8);
  const Status status = server.redo(gradients);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message, HasSubstr("chunk 1 of the logged gradient has 8 bytes, expected"));
  gradients.pop_back();
  EXPECT_FALSE(server.redo(gradients).ok());
  EXPECT_EQ(server.version(), 0U);
  step(server, noise(layout(), 1));  // still in order
  EXPECT_EQ(flat_weights(server), flat_weights(other));
}

TEST(Server, ClipsTheGlobalNorm) {
  Server server = made(sgd(), 3);
  const Flat sum = noise(layout(), 2);
  double squares = 0;
  for (const Placement& p : server.layout().placements()) {
    if (server.layout().entries()[p.entry].kind != TensorKind::trained) continue;
    for (std::uint64_t i = 0; i < p.elements; ++i) squares += std::pow(static_cast<double>(sum[p.offset + i]) / 2, 2);
  }
  const auto chunks = server.layout().chunks();
  for (auto c = static_cast<ChunkId>(chunks.size()); c-- > 0;) {
    const auto part = of(sum, chunks[c]);
    server.reduce(c, {&part, 1}, 2, 2);
  }
  EXPECT_NEAR(server.clip(), std::sqrt(squares), 1e-9 * std::sqrt(squares));
  double clipped = 0;
  for (ChunkId c = 0; c < chunks.size(); ++c) {
    if (chunks[c].kind == ChunkKind::statistics) {
      EXPECT_EQ(server.gradient(c).floats()[0], sum[chunks[c].offset] / 2);  // takes no part
      continue;
    }
    for (const float value : server.gradient(c).floats()) clipped += static_cast<double>(value) * value;
  }
  EXPECT_NEAR(std::sqrt(clipped), 3, 1e-5);
}

TEST(Server, TheNormOfTheStepBeforeClipsChunkByChunk) {
  constexpr double kLimit = 3;
  Server server = made(sgd(), kLimit), free = made(sgd(), 1e6);
  server.clip_by_step_before(std::nullopt);
  EXPECT_TRUE(server.clips()) << "nothing is known of a step before the first";
  step(server, noise(layout(), 2));
  step(free, noise(layout(), 2));
  double norm_before = free.snapshot().norm_before.value_or(0);
  EXPECT_EQ(norm_before, 0) << "of no use where it does not clip";
  norm_before = server.snapshot().norm_before.value();
  EXPECT_GT(norm_before, kLimit);

  const auto chunks = server.layout().chunks();
  for (std::uint64_t seed = 3; seed < 6; ++seed) {
    EXPECT_FALSE(server.clips());
    const Flat sum = noise(layout(), seed);
    for (auto c = static_cast<ChunkId>(chunks.size()); c-- > 0;) {
      const auto part = of(sum, chunks[c]);
      server.reduce(c, {&part, 1}, 2, 2);
      free.reduce(c, {&part, 1}, 2, 2);
      server.apply(c);
    }
    free.clip();
    EXPECT_EQ(server.gradient_norm(), free.gradient_norm());
    const auto inverse = 1.0F / (static_cast<float>(norm_before) + 1e-6F);
    for (ChunkId c = 0; c < chunks.size(); ++c) {
      const float factor = chunks[c].kind == ChunkKind::statistics ? 1 : inverse * static_cast<float>(kLimit);
      EXPECT_EQ(server.gradient(c).floats()[0], free.gradient(c).floats()[0] * factor);
      free.apply(c);
    }
    norm_before = server.gradient_norm();
    server.finish_step();
    free.finish_step();
    EXPECT_EQ(server.snapshot().norm_before, norm_before);
  }
}

TEST(Server, WhoKnowsTheNormBeforeGoesOnBitForBit) {
  Server whole = made(adamw(), 1);
  whole.clip_by_step_before(std::nullopt);
  std::vector<SharedBytes> logged;
  for (std::uint64_t i = 0; i < 3; ++i) logged = step(whole, noise(layout(), 10 + i));
  Server resumed = *Server::make(layout(), adamw(), {}, 1, whole.snapshot());
  resumed.clip_by_step_before(whole.snapshot().norm_before);
  Server fork = whole.fork(), taker = whole.fork();
  for (std::uint64_t i = 3; i < 6; ++i) {
    step(whole, noise(layout(), 10 + i));
    step(resumed, noise(layout(), 10 + i));
    step(fork, noise(layout(), 10 + i));
    taker.adopt(fork.snapshot());
  }
  EXPECT_EQ(flat_weights(whole), flat_weights(resumed));
  EXPECT_EQ(flat_weights(whole), flat_weights(taker));
  EXPECT_FALSE(taker.clips());
}

TEST(Server, LeavesASmallNormAlone) {
  Server clipping = made(sgd(), 1e6);
  Server plain = made(sgd());
  step(clipping, noise(layout(), 2));
  step(plain, noise(layout(), 2));
  EXPECT_EQ(flat_weights(clipping), flat_weights(plain));
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

}  // namespace
}  // namespace motley::ps

#include <gtest/gtest.h>

#include <cmath>

#include "server_fixture.h"

namespace motley::ps {
namespace {

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
  EXPECT_NEAR(server.gradient_norm(), std::sqrt(squares), 1e-9 * std::sqrt(squares));
  ASSERT_TRUE(server.close_gradient().ok());
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
    std::vector<SharedBytes> clipped(chunks.size());
    for (auto c = static_cast<ChunkId>(chunks.size()); c-- > 0;) {
      const auto part = of(sum, chunks[c]);
      server.reduce(c, {&part, 1}, 2, 2);
      free.reduce(c, {&part, 1}, 2, 2);
      clipped[c] = server.gradient(c);
      server.apply(c);
    }
    ASSERT_TRUE(free.close_gradient().ok());
    EXPECT_EQ(server.gradient_norm(), free.gradient_norm());
    const auto inverse = 1.0F / (static_cast<float>(norm_before) + 1e-6F);
    for (ChunkId c = 0; c < chunks.size(); ++c) {
      const float factor = chunks[c].kind == ChunkKind::statistics ? 1 : inverse * static_cast<float>(kLimit);
      EXPECT_EQ(clipped[c].floats()[0], free.gradient(c).floats()[0] * factor);
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
  for (std::uint64_t i = 0; i < 3; ++i) step(whole, noise(layout(), 10 + i));
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

}  // namespace
}  // namespace motley::ps

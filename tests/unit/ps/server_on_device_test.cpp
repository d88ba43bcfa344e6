#include <gtest/gtest.h>

#include "accelerator.h"
#include "server_fixture.h"

namespace motley::ps {
namespace {

struct Case {
  OptimizerKind kind;
  double clip_norm;
  bool previous;
  codec::CodecId codec;
};

Server server_of(const Case& of) {
  const Layout shape = layout();
  GroupSpec group;
  if (of.kind == OptimizerKind::sgd) group.momentum = 0.9;
  Snapshot start;
  start.weights = chunked(shape, noise(shape, 1));
  Server server = *Server::make(shape, {of.kind, {group, group}}, {}, of.clip_norm, start);
  if (of.previous) server.clip_by_step_before(std::nullopt);
  return server;
}

std::vector<SharedBytes> encoded(const Layout& shape, const Flat& flat, codec::CodecId codec) {
  std::vector<SharedBytes> found;
  for (const Chunk& chunk : shape.chunks()) {
    const std::span<const float> values = of(flat, chunk);
    const bool large = chunk.kind == ChunkKind::large;
    std::vector<std::byte> body(codec::encoded_bytes(large ? codec : codec::CodecId::fp32, values.size()));
    codec::encode(large ? codec : codec::CodecId::fp32, values, {}, body, {});
    found.push_back(SharedBytes::copy_of(body));
  }
  return found;
}

class ServerOnDevice : public testing::TestWithParam<Case> {};

TEST_P(ServerOnDevice, StepsAreThoseOfTheHostAndOnlyWhatMustCrosses) {
  const Case& of_case = GetParam();
  Server here = server_of(of_case), server = server_of(of_case);
  Accelerator card;
  const auto device = std::make_shared<AcceleratorServer>(card, server_of(of_case));
  ASSERT_TRUE(server.settle(*device).ok());
  const Layout& shape = here.layout();
  std::size_t model = 0;
  for (const Chunk& chunk : shape.chunks()) model += chunk.elements * sizeof(float);
  for (std::uint64_t step = 0; step < 4; ++step) {
    const Flat own = noise(shape, 10 + step), others = noise(shape, 20 + step);
    const std::vector<SharedBytes> sent = encoded(shape, others, of_case.codec);
    std::vector<std::vector<GradientPart>> parts(shape.chunks().size());
    std::size_t bytes = 0;
    for (ChunkId chunk = 0; chunk < parts.size(); ++chunk) {
      const bool large = shape.chunks()[chunk].kind == ChunkKind::large;
      const codec::CodecId codec = large ? of_case.codec : codec::CodecId::fp32;
      const std::span<const float> mine = of(own, shape.chunks()[chunk]);
      const std::array both{codec::Encoded(mine), *codec::Encoded::make(codec, sent[chunk].bytes(), mine.size())};
      here.reduce(chunk, both, 8, 8);
      parts[chunk] = {{0, device->keep(mine)}, {static_cast<std::uint8_t>(codec), sent[chunk]}};
      bytes += sent[chunk].size();
    }
    ASSERT_TRUE(here.close_gradient().ok());
    const std::size_t up = card.up, down = card.down;
    ASSERT_TRUE(device->sum(parts).ok());
    const Result<StepNumbers> found = device->reduce(8, 8);
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(found->norm, here.gradient_norm());
    ASSERT_TRUE(server.step_at(*device, found->norm).ok());
    ASSERT_TRUE(server.download_weights(*device).ok());
    EXPECT_EQ(card.up - up, bytes);
    EXPECT_EQ(card.down - down, model);
    for (ChunkId chunk = 0; chunk < parts.size(); ++chunk)
      EXPECT_TRUE(std::ranges::equal(server.weights(chunk).bytes(), here.apply(chunk).bytes()));
    here.finish_step();
    EXPECT_TRUE(server.handles().optimizer.empty());
  }
  server.adopt(*server.download(*device));
  const Snapshot expected = here.snapshot(), found = server.snapshot();
  EXPECT_EQ(found.version, expected.version);
  EXPECT_EQ(found.norm_before, expected.norm_before);
  for (const auto& [name, chunks] : expected.optimizer) {
    for (ChunkId chunk = 0; chunk < chunks.size(); ++chunk)
      EXPECT_TRUE(std::ranges::equal(found.optimizer.at(name)[chunk].bytes(), chunks[chunk].bytes()));
  }
}

INSTANTIATE_TEST_SUITE_P(All, ServerOnDevice,
                         testing::Values(Case{OptimizerKind::sgd, 0, false, codec::CodecId::fp32},
                                         Case{OptimizerKind::adam, 0.5, false, codec::CodecId::bf16},
                                         Case{OptimizerKind::adamw, 0.5, true, codec::CodecId::fp32},
                                         Case{OptimizerKind::adamw, 0, false, codec::CodecId::int8}));

TEST(AcceleratorDeathTest, WhatLiesThereIsNotReadHere) {
  Accelerator card;
  const std::vector<float> ones(16, 1.0F);
  const SharedBytes there = card.put(std::as_bytes(std::span(ones)));
  card.wait();
  EXPECT_DEATH(static_cast<void>(codec::Encoded(there.floats()).largest()), "");
}

}  // namespace
}  // namespace motley::ps

#pragma once
// A small model, its server, and steps from noise.

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/philox.h"
#include "ps/server.h"

namespace motley::ps {

using Flat = std::vector<float>;

inline LayoutEntry entry(std::string name, std::vector<std::int64_t> shape, std::uint32_t group = 0) {
  LayoutEntry result;
  result.name = std::move(name);
  result.shape = std::move(shape);
  result.group = group;
  return result;
}

inline LayoutEntry statistic(std::string name, TensorKind kind, float momentum) {
  LayoutEntry result = entry(std::move(name), {3});
  result.kind = kind;
  result.momentum = momentum;
  return result;
}

/// Three large chunks, one of which holds parts of two tensors of different groups, a small one, and statistics.
inline Layout layout() {
  return *Layout::make({entry("a", {20'000}), entry("b", {150, 133}, 1), entry("bias", {10}, 1),
                        statistic("mean", TensorKind::running_mean, 0.1F),
                        statistic("var", TensorKind::running_var, 0.1F)});
}

/// Noise in the tensors, zero in the padding.
inline Flat noise(const Layout& shape, std::uint64_t seed) {
  Flat flat(shape.flat_elements());
  Philox random(seed);
  for (const Placement& p : shape.placements()) {
    for (std::uint64_t i = 0; i < p.elements; ++i) flat[p.offset + i] = static_cast<float>(random.gaussian());
  }
  return flat;
}

inline std::span<const float> of(const Flat& flat, const Chunk& chunk) {
  return {flat.data() + chunk.offset, chunk.elements};
}

inline std::vector<SharedBytes> chunked(const Layout& shape, const Flat& flat) {
  std::vector<SharedBytes> chunks;
  for (const Chunk& chunk : shape.chunks()) chunks.push_back(SharedBytes::copy_of(std::as_bytes(of(flat, chunk))));
  return chunks;
}

inline Flat flat_weights(const Server& server) {
  Flat flat;
  for (ChunkId c = 0; c < server.layout().chunks().size(); ++c) {
    const SharedBytes bytes = server.weights(c);
    flat.insert(flat.end(), bytes.floats().begin(), bytes.floats().end());
  }
  return flat;
}

inline Snapshot start(const Layout& shape) {
  Flat flat = noise(shape, 1);
  for (const Placement& p : shape.placements()) {
    if (shape.entries()[p.entry].kind == TensorKind::running_var) {
      for (std::uint64_t i = 0; i < p.elements; ++i) flat[p.offset + i] = 1;
    }
  }
  return {0, chunked(shape, flat), {}};
}

inline OptimizerSpec adamw() {
  GroupSpec group;
  group.weight_decay = 0.01;
  return {OptimizerKind::adamw, {group, group}};
}

inline OptimizerSpec sgd(double momentum = 0) {
  GroupSpec group;
  group.lr = 0.5;
  group.momentum = momentum;
  return {OptimizerKind::sgd, {group, group}};
}

inline Server made(const OptimizerSpec& optimizer, double clip_norm = 0) {
  auto server = Server::make(layout(), optimizer, {}, clip_norm, start(layout()));
  EXPECT_TRUE(server.ok()) << (server.ok() ? "" : server.error().message);
  return *std::move(server);
}

/// One step from a gradient sum of weight and samples 2.
inline void step(Server& server, const Flat& sum) {
  const auto chunks = server.layout().chunks();
  for (ChunkId c = 0; c < chunks.size(); ++c) {
    const auto part = of(sum, chunks[c]);
    server.reduce(c, {&part, 1}, 2, 2);
  }
  EXPECT_TRUE(server.close_gradient().ok());
  for (ChunkId c = 0; c < chunks.size(); ++c) server.apply(c);
  server.finish_step();
}

}  // namespace motley::ps

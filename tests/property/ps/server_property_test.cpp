#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <numeric>

#include "base/philox.h"
#include "ps/server.h"

namespace motley::ps {
namespace {

using Flat = std::vector<float>;

Flat noise(std::size_t count, std::uint64_t seed) {
  Flat values(count);
  Philox random(seed);
  for (float& value : values) value = static_cast<float>(random.gaussian());
  return values;
}

LayoutEntry tensor(std::string name, std::int64_t elements) {
  LayoutEntry entry;
  entry.name = std::move(name);
  entry.shape = {elements};
  return entry;
}

std::span<const float> of(const Flat& flat, const Chunk& chunk) { return {flat.data() + chunk.offset, chunk.elements}; }

OptimizerSpec any_optimizer() {
  GroupSpec group;
  group.weight_decay = 0.01;
  group.momentum = *rc::gen::element(0.0, 0.9);
  group.nesterov = group.momentum > 0 && *rc::gen::arbitrary<bool>();
  return {*rc::gen::element(OptimizerKind::sgd, OptimizerKind::adam, OptimizerKind::adamw), {group}};
}

/// A server over one model; the gradient of a step is the sum of `parts`, all as long as the flat vector.
struct Bench {
  Server server;

  Bench(const Layout& layout, const OptimizerSpec& optimizer, double clip_norm, const Flat& start)
      : server(make(layout, optimizer, clip_norm, start)) {}

  static Server make(const Layout& layout, const OptimizerSpec& optimizer, double clip_norm, const Flat& start) {
    Snapshot snapshot;
    for (const Chunk& chunk : layout.chunks()) {
      snapshot.weights.push_back(SharedBytes::copy_of(std::as_bytes(of(start, chunk))));
    }
    return *Server::make(layout, optimizer, {}, clip_norm, snapshot);
  }
  void step(const std::vector<Flat>& parts, const std::vector<ChunkId>& order) {
    for (const ChunkId c : order) {
      std::vector<std::span<const float>> pieces;
      for (const Flat& part : parts) pieces.push_back(of(part, server.layout().chunks()[c]));
      server.reduce(c, pieces, 96, 96);
    }
    EXPECT_TRUE(server.close_gradient().ok());
    for (const ChunkId c : order) server.apply(c);
    server.finish_step();
  }
  [[nodiscard]] Flat weights() const {
    Flat flat;
    for (ChunkId c = 0; c < server.layout().chunks().size(); ++c) {
      const SharedBytes bytes = server.weights(c);
      flat.insert(flat.end(), bytes.floats().begin(), bytes.floats().end());
    }
    return flat;
  }
};

std::vector<ChunkId> in_order(std::size_t count) {
  std::vector<ChunkId> order(count);
  std::iota(order.begin(), order.end(), 0U);
  return order;
}

// Multiples of 64, so that there is no padding to tell apart.
RC_GTEST_PROP(ServerProperties, ResultsDoNotDependOnTheCutIntoChunks, ()) {
  const std::int64_t own = 64 * *rc::gen::inRange(64, 600);
  const std::int64_t other = 64 * *rc::gen::inRange(64, 600);
  // A second tensor in front moves every boundary of the first one.
  const Layout alone = *Layout::make({tensor("own", own)});
  const Layout shared = *Layout::make({tensor("other", other), tensor("own", own)});
  const OptimizerSpec optimizer = any_optimizer();
  const auto seed = *rc::gen::inRange<std::uint64_t>(0, 1000);
  const auto parts_count = *rc::gen::inRange<std::size_t>(1, 5);

  const auto behind = [other](const Flat& values) {
    Flat flat(static_cast<std::size_t>(other), 1.0F);
    flat.insert(flat.end(), values.begin(), values.end());
    return flat;
  };
  const Flat start = noise(static_cast<std::size_t>(own), seed);
  Bench small(alone, optimizer, 0, start);
  Bench large(shared, optimizer, 0, behind(start));
  for (std::uint64_t step = 0; step < 2; ++step) {
    std::vector<Flat> parts;
    std::vector<Flat> parts_behind;
    for (std::size_t i = 0; i < parts_count; ++i) {
      parts.push_back(noise(static_cast<std::size_t>(own), seed + 1000 * (step + 1) + i));
      parts_behind.push_back(behind(parts.back()));
    }
    small.step(parts, in_order(alone.chunks().size()));
    large.step(parts_behind, in_order(shared.chunks().size()));
  }
  const Flat all = large.weights();
  RC_ASSERT(Flat(all.begin() + other, all.end()) == small.weights());
}

RC_GTEST_PROP(ServerProperties, ResultsDoNotDependOnTheOrderOfChunks, ()) {
  const Layout layout = *Layout::make({tensor("w", 64 * *rc::gen::inRange(64, 1200)), tensor("bias", 64)});
  const OptimizerSpec optimizer = any_optimizer();
  const double clip_norm = *rc::gen::element(0.0, 0.1);
  const Flat start = noise(layout.flat_elements(), 1);
  Bench forward(layout, optimizer, clip_norm, start);
  Bench mixed(layout, optimizer, clip_norm, start);
  std::vector<ChunkId> order = in_order(layout.chunks().size());
  Philox random(*rc::gen::inRange<std::uint64_t>(0, 1000));
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  for (std::uint64_t step = 0; step < 2; ++step) {
    const std::vector<Flat> parts{noise(layout.flat_elements(), 7 + step), noise(layout.flat_elements(), 70 + step)};
    forward.step(parts, in_order(layout.chunks().size()));
    mixed.step(parts, order);
  }
  RC_ASSERT(forward.weights() == mixed.weights());
}

// Sums of small integers are exact in fp32, so any cut of the work must give the same bits.
RC_GTEST_PROP(ServerProperties, ExactSumsDoNotDependOnTheNumberOfParts, ()) {
  const Layout layout = *Layout::make({tensor("w", 64 * *rc::gen::inRange(64, 200))});
  const auto count = *rc::gen::inRange<std::size_t>(1, 6);
  std::vector<Flat> parts;
  Flat sum(layout.flat_elements(), 0.0F);
  for (std::size_t i = 0; i < count; ++i) {
    parts.push_back(noise(layout.flat_elements(), i));
    for (std::size_t k = 0; k < sum.size(); ++k) {
      parts[i][k] = std::round(parts[i][k] * 100);
      sum[k] += parts[i][k];
    }
  }
  const OptimizerSpec optimizer = any_optimizer();
  Bench split(layout, optimizer, 1, Flat(layout.flat_elements(), 1.0F));
  Bench whole(layout, optimizer, 1, Flat(layout.flat_elements(), 1.0F));
  split.step(parts, in_order(layout.chunks().size()));
  whole.step({sum}, in_order(layout.chunks().size()));
  RC_ASSERT(split.weights() == whole.weights());
}

}  // namespace
}  // namespace motley::ps

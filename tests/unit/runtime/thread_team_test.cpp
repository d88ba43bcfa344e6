#include "runtime/thread_team.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "base/philox.h"
#include "ps/server.h"

namespace motley::runtime {
namespace {

TEST(ThreadTeam, EveryPieceIsDoneOnce) {
  ThreadTeam team(3);
  for (std::size_t count = 0; count < 200; ++count) {
    std::vector<std::atomic<int>> done(count);
    team.each(count, [&](std::size_t i) { ++done[i]; });
    EXPECT_TRUE(std::ranges::all_of(done, [](const std::atomic<int>& times) { return times == 1; })) << count;
  }
}

TEST(ThreadTeam, OthersTakeAPart) {
  ThreadTeam team(1);
  std::promise<void> helped;
  std::once_flag once;
  const std::thread::id caller = std::this_thread::get_id();
  team.each(2, [&](std::size_t) {  // the caller's piece ends when the helper has one
    if (std::this_thread::get_id() != caller) return std::call_once(once, [&] { helped.set_value(); });
    helped.get_future().wait();
  });
}

TEST(ThreadTeam, ASecondCallerWorksAlone) {
  ThreadTeam team(1);
  std::atomic<int> pieces{0};
  team.each(2, [&](std::size_t) { std::thread([&] { team.each(5, [&](std::size_t) { ++pieces; }); }).join(); });
  EXPECT_EQ(pieces, 10);
}

/// A chunk that is large enough to be shared, in two tensors whose border lies within a stretch, and a small one.
Layout layout() {
  std::vector<LayoutEntry> entries(3);
  entries[0].name = "a", entries[0].shape = {300'001};
  entries[1].name = "b", entries[1].shape = {500'003}, entries[1].group = 1;
  entries[2].name = "bias", entries[2].shape = {10};
  return *Layout::make(std::move(entries));
}

struct Trained {
  std::vector<SharedBytes> weights;
  std::vector<double> norms;
};

Trained train(const ps::OptimizerSpec& optimizer, double clip_norm, std::shared_ptr<ps::Parallel> helpers) {
  const Layout shape = layout();
  const auto noise = [&](std::uint64_t seed) {
    std::vector<float> flat(shape.flat_elements());
    Philox random(seed);
    for (const Placement& p : shape.placements())
      for (std::uint64_t i = 0; i < p.elements; ++i)
        flat[p.offset + i] = static_cast<float>(random.next_u32()) * 0x1p-31F - 1;
    return flat;
  };
  ps::Snapshot start;
  const std::vector<float> first = noise(0);
  for (const Chunk& chunk : shape.chunks())
    start.weights.push_back(
        SharedBytes::copy_of(std::as_bytes(std::span(first).subspan(chunk.offset, chunk.elements))));
  ps::Server server = *ps::Server::make(shape, optimizer, {}, clip_norm, start);
  server.share_work(std::move(helpers));
  Trained result;
  for (std::uint64_t step = 1; step < 4; ++step) {
    const std::vector<float> one = noise(step), other = noise(100 + step);
    std::vector<double> squares(2);
    for (ChunkId c = 0; c < shape.chunks().size(); ++c) {
      const Chunk& chunk = shape.chunks()[c];
      const std::vector<std::span<const float>> parts{std::span(one).subspan(chunk.offset, chunk.elements),
                                                      std::span(other).subspan(chunk.offset, chunk.elements)};
      result.norms.push_back(server.reduce(c, parts, 8, 8, squares));
    }
    result.norms.insert(result.norms.end(), squares.begin(), squares.end());
    if (server.clips()) result.norms.push_back(server.clip());
    for (ChunkId c = 0; c < shape.chunks().size(); ++c) server.apply(c);
    server.finish_step();
  }
  result.weights = server.snapshot().weights;
  return result;
}

TEST(ThreadTeam, AServerThatSharesItsWorkHasTheSameBits) {
  ps::OptimizerSpec sgd, adamw;
  sgd.groups.resize(2);
  sgd.groups[1].momentum = 0.9;
  adamw.kind = ps::OptimizerKind::adamw;
  adamw.groups.resize(2);
  for (const ps::OptimizerSpec& optimizer : {sgd, adamw}) {
    for (const double clip_norm : {0.0, 1.0}) {
      const Trained alone = train(optimizer, clip_norm, nullptr);
      const Trained together = train(optimizer, clip_norm, std::make_shared<ThreadTeam>(3));
      EXPECT_EQ(alone.norms, together.norms);
      for (std::size_t c = 0; c < alone.weights.size(); ++c)
        EXPECT_TRUE(std::ranges::equal(alone.weights[c].bytes(), together.weights[c].bytes())) << c;
    }
  }
}

TEST(ThreadTeam, SeveralThreadsMayReduceChunksOfOneServer) {
  const Layout shape = layout();
  const auto count = static_cast<ChunkId>(shape.chunks().size());
  ps::Snapshot start;
  std::vector<std::vector<float>> gradients;
  for (const Chunk& chunk : shape.chunks()) {
    gradients.emplace_back(chunk.elements, 0.5F);
    start.weights.push_back(SharedBytes::copy_of(std::as_bytes(std::span(gradients.back()))));
  }
  ps::OptimizerSpec sgd;
  sgd.groups.resize(2);
  ps::Server server = *ps::Server::make(shape, sgd, {}, 0, start);
  server.share_work(std::make_shared<ThreadTeam>(1));
  std::vector<double> means(count), squares(count);
  const auto reduce = [&](ChunkId chunk) {
    const std::span<const float> part(gradients[chunk]);
    means[chunk] = server.reduce(chunk, {&part, 1}, 2, 2, {&squares[chunk], 1});
  };
  std::thread other([&] {
    for (ChunkId chunk = 1; chunk < count; chunk += 2) reduce(chunk);
  });
  for (ChunkId chunk = 0; chunk < count; chunk += 2) reduce(chunk);
  other.join();
  for (ChunkId chunk = 0; chunk < count; ++chunk) EXPECT_EQ(squares[chunk], 4 * means[chunk]) << chunk;
}

}  // namespace
}  // namespace motley::runtime

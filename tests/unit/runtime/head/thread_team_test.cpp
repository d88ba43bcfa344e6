#include "runtime/head/thread_team.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "../../ps/server_fixture.h"

namespace motley::runtime {
namespace {

constexpr auto kHelpMax = std::chrono::minutes(1);  // then a test fails that would wait for good

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
    EXPECT_EQ(helped.get_future().wait_for(kHelpMax), std::future_status::ready) << "nobody helps";
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
  return *Layout::make({ps::entry("a", {300'001}), ps::entry("b", {500'003}, 1), ps::entry("bias", {10})});
}

struct Trained {
  std::vector<SharedBytes> weights;
  std::vector<double> norms;
};

/// `noise`: the first weights, then two gradients for each step.
Trained train(const std::vector<ps::Flat>& noise, const ps::OptimizerSpec& optimizer, double clip_norm,
              std::shared_ptr<ps::Parallel> helpers) {
  const Layout shape = layout();
  ps::Server server = *ps::Server::make(shape, optimizer, {}, clip_norm, {0, ps::chunked(shape, noise[0]), {}});
  server.share_work(std::move(helpers));
  Trained result;
  for (std::size_t step = 1; step + 1 < noise.size(); step += 2) {
    std::vector<double> squares(2);
    for (ChunkId c = 0; c < shape.chunks().size(); ++c) {
      const Chunk& chunk = shape.chunks()[c];
      const std::vector<std::span<const float>> parts{ps::of(noise[step], chunk), ps::of(noise[step + 1], chunk)};
      result.norms.push_back(server.reduce(c, parts, 8, 8, squares));
    }
    result.norms.insert(result.norms.end(), squares.begin(), squares.end());
    result.norms.push_back(server.gradient_norm());
    EXPECT_TRUE(server.close_gradient().ok());
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
  std::vector<ps::Flat> noise;
  for (std::uint64_t seed = 0; seed < 7; ++seed) noise.push_back(ps::noise(layout(), seed));
  for (const ps::OptimizerSpec& optimizer : {sgd, adamw}) {
    for (const double clip_norm : {0.0, 1.0}) {
      const Trained alone = train(noise, optimizer, clip_norm, nullptr);
      const Trained together = train(noise, optimizer, clip_norm, std::make_shared<ThreadTeam>(3));
      EXPECT_EQ(alone.norms, together.norms);
      for (std::size_t c = 0; c < alone.weights.size(); ++c)
        EXPECT_TRUE(std::ranges::equal(alone.weights[c].bytes(), together.weights[c].bytes())) << c;
    }
  }
}

TEST(ThreadTeam, SeveralThreadsMayReduceChunksOfOneServer) {
  const Layout shape = layout();
  const auto count = static_cast<ChunkId>(shape.chunks().size());
  const ps::Flat gradient = ps::noise(shape, 1);
  ps::OptimizerSpec sgd;
  sgd.groups.resize(2);
  ps::Server server = *ps::Server::make(shape, sgd, {}, 0, {0, ps::chunked(shape, gradient), {}});
  server.share_work(std::make_shared<ThreadTeam>(1));
  std::vector<double> means(count), squares(count);
  const auto reduce = [&](ChunkId chunk) {
    const std::span<const float> part = ps::of(gradient, shape.chunks()[chunk]);
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

#include "../compute/mac.h"
#include "compute_bench.h"

namespace motley::runtime {
namespace {

/// A compute thread that computes with such a device, and what people are told.
struct MacBench {
  std::vector<float> gradients;
  std::vector<std::string> notes;
  std::optional<Error> failed, out;
  compute::Mac* mac = nullptr;
  std::vector<std::promise<void>> over = std::vector<std::promise<void>>(64);
  std::size_t ended = 0, waited = 0;
  std::unique_ptr<ComputeThread> thread;

  explicit MacBench(compute::MacFaults faults, double per_sample = 1e-6) {
    ComputeEvents events;
    events.progress = [](std::uint64_t, std::uint64_t) {};
    events.begin = [](std::uint64_t, std::uint64_t, const engine::Begun&) {};
    events.chunk = [this](std::uint64_t, ChunkId, const SharedBytes& chunk) { gradients.push_back(chunk.floats()[0]); };
    events.finished = [this](std::uint64_t, const Outcome&, double, double) { over.at(ended++).set_value(); };
    events.failed = [this](std::uint64_t, Error error) {
      failed = std::move(error);
      over.at(ended++).set_value();
    };
    events.note = [this](const std::string& text) { notes.push_back(text); };
    events.out = [this](Error error) { out = std::move(error); };
    thread = std::make_unique<ComputeThread>(std::move(events));
    std::promise<void> ready;
    thread->prepare(
        [&]() -> Result<Prepared> {
          auto made = std::make_unique<compute::Mac>(faults, per_sample);
          mac = made.get();
          return Prepared{
              .model = std::move(made), .train_samples = 4096, .seed = 5, .micro_batch = 64, .shuffle = false};
        },
        [&](const Result<const Layout*>&) { ready.set_value(); });
    ready.get_future().get();
  }
  void run(std::uint64_t count) {
    engine::TaskOrder order;
    order.number = waited + 1;
    order.count = order.limit = count;
    const std::vector<float> ones(mac->layout().flat_elements(), 1.0F);
    for (const Chunk& chunk : mac->layout().chunks())
      order.weights.push_back(SharedBytes::copy_of(std::as_bytes(std::span(ones).first(chunk.elements))));
    thread->start(std::move(order));
    over.at(waited++).get_future().get();
  }
};

TEST(ComputeCare, AMacThatIsRightGoesOnInTwoSizes) {
  MacBench bench({});
  bench.run(64);
  bench.mac->sizes.clear();  // after the trial
  for (std::uint64_t count = 40; count < 90; ++count) bench.run(count);
  EXPECT_EQ(bench.mac->sizes.size(), 2U);
  EXPECT_TRUE(bench.notes.empty());
  EXPECT_FALSE(bench.failed);
  EXPECT_NEAR(bench.gradients.back(), 89 * 90 / 2, 0.1);
}

TEST(ComputeCare, OneThatIsWrongAfterAPassOfAnotherSizeIsOutBeforeItsFirstTask) {
  MacBench bench({.after_other_size = 1e3});
  bench.run(64);
  bench.thread->stop();
  ASSERT_TRUE(bench.out && bench.failed);
  EXPECT_NE(bench.out->message.find("mps computes wrong gradients"), std::string::npos) << bench.out->message;
  EXPECT_TRUE(bench.gradients.empty());
}

TEST(ComputeCare, WhatIsLostIsComputedAgainAndTheThirdTimeTheDeviceIsOut) {
  MacBench bench({.lost = 0.06});
  int tasks = 0;
  while (!bench.failed && tasks < 60) {
    bench.run(64);
    ++tasks;
  }
  bench.thread->stop();
  ASSERT_TRUE(bench.out);
  EXPECT_NE(bench.out->message.find("that was the third time"), std::string::npos) << bench.out->message;
  EXPECT_EQ(bench.notes.size(), 2U);
  for (const float gradient : bench.gradients) EXPECT_NEAR(gradient, 64 * 65 / 2, 0.1);
}

}  // namespace
}  // namespace motley::runtime

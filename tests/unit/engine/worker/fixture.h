#pragma once
// A worker of a model with one large and one small tensor, whose computing the test does itself.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/worker/worker.h"

namespace motley::engine {

constexpr std::uint64_t kRunOfWorker = 77;
constexpr std::uint64_t kFence = std::uint64_t{1} << 32 | 9;
constexpr std::uint64_t pass_of(std::uint64_t step) { return std::uint64_t{1} << 56 | step; }

inline wire::Frame control_frame(const wire::Message& message, std::uint64_t fence) {
  wire::FrameHeader header;
  header.type = wire::FrameType::control;
  header.run = kRunOfWorker;
  header.fence = fence;
  return wire::seal(header, wire::encode(message));
}

inline wire::FrameHeader weights_header(std::uint64_t version, ChunkId chunk, std::uint64_t fence) {
  wire::FrameHeader header;
  header.type = wire::FrameType::weights;
  header.run = kRunOfWorker;
  header.fence = fence;
  header.version = version;
  header.chunk = chunk;
  return header;
}

/// Keeps why the worker left; a test adds what it looks at.
struct QuietOutput : WorkerOutput {
  void prepare(const wire::RunSpec&, const SharedBytes&) override {}
  void weights_arrived(std::uint64_t, ChunkId, SharedBytes) override {}
  void limit_task(std::uint64_t, std::uint64_t) override {}
  void finish_early(std::uint64_t) override {}
  void admitted(std::uint64_t) override {}
  void make_steps(DelegatedSteps) override {}
  void end_steps(std::uint64_t) override {}
  void step_done(std::uint64_t, std::uint64_t) override {}
  void disconnect(bool, const Error& why) override { ended = why.message; }

  std::string ended;
};

inline Layout two_tensors() {
  std::vector<LayoutEntry> entries(2);
  entries[0].name = "weight";
  entries[0].shape = {8000};
  entries[1].name = "bias";
  entries[1].shape = {10};
  return *Layout::make(std::move(entries));
}

/// Numbers for each chunk.
inline std::vector<std::vector<float>> ramps(const Layout& layout) {
  std::vector<std::vector<float>> all;
  for (const Chunk& chunk : layout.chunks()) {
    auto& one = all.emplace_back(chunk.elements);
    for (std::size_t i = 0; i < one.size(); ++i) one[i] = static_cast<float>(i % 97) / 7;
  }
  return all;
}

}  // namespace motley::engine

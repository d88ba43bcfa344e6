#pragma once
// What the tests of checkpoints write.

#include <numeric>
#include <utility>

#include "store/checkpoint.h"
#include "temporary.h"

namespace motley::store::test {

// Two large tensors of which one spans chunks, small ones that share a chunk, BatchNorm statistics, a counter, a frozen
// tensor and two names for one.
inline Layout make_layout() {
  const auto of = [](const char* name, std::vector<std::int64_t> shape, TensorKind kind) {
    LayoutEntry entry;
    entry.name = name;
    entry.shape = std::move(shape);
    entry.kind = kind;
    return entry;
  };
  std::vector<LayoutEntry> entries{of("conv.weight", {50, 20, 5, 5}, TensorKind::trained),
                                   of("conv.bias", {50}, TensorKind::trained),
                                   of("bn.running_mean", {50}, TensorKind::running_mean),
                                   of("bn.running_var", {50}, TensorKind::running_var),
                                   of("bn.num_batches_tracked", {}, TensorKind::counter),
                                   of("head.weight", {100, 60}, TensorKind::trained),
                                   of("scale", {}, TensorKind::trained),
                                   of("frozen", {3}, TensorKind::frozen),
                                   of("tied.weight", {100, 60}, TensorKind::alias)};
  entries[1].group = 1;
  entries[2].momentum = entries[3].momentum = 0.1F;
  entries[4].dtype = DType::i64;
  entries[4].content_hash = 1000;
  entries[4].momentum = 2;
  entries[7].dtype = DType::f16;
  entries[7].content_hash = 0xFEDCBA9876543210;
  entries[8].alias_of = "head.weight";
  auto layout = Layout::make(std::move(entries));
  EXPECT_TRUE(layout) << message(layout);
  return *layout;
}

// Chunks whose elements tell where they are; padding is zero, as the layout wants it.
inline std::vector<SharedBytes> chunks_of(const Layout& layout, float shift, bool statistics) {
  std::vector<float> flat(layout.flat_elements(), 0);
  for (const Placement& placement : layout.placements()) {
    for (std::uint64_t i = 0; i < placement.elements; ++i)
      flat[placement.offset + i] = static_cast<float>(placement.offset + i) + shift;
  }
  std::vector<SharedBytes> chunks;
  for (const Chunk& chunk : layout.chunks()) {
    if (chunk.kind == ChunkKind::statistics && !statistics) {
      chunks.emplace_back();
      continue;
    }
    const auto begin = flat.begin() + static_cast<std::ptrdiff_t>(chunk.offset);
    chunks.push_back(floats({begin, begin + chunk.elements}));
  }
  return chunks;
}

inline CheckpointContent make_content(std::uint64_t step) {
  CheckpointContent content;
  content.layout = make_layout();
  content.step = step;
  content.epoch = 2;
  content.position = 512;
  content.run = 0x8000000000000001;
  content.incarnation = 3;
  content.config = "[train]\nsteps = 10 # \"quoted\" ünïcode\n";
  content.model_kind = "torchscript";
  content.weights = chunks_of(content.layout, 0.25F, true);
  content.optimizer["exp_avg"] = chunks_of(content.layout, 0.5F, false);
  content.optimizer["exp_avg_sq"] = chunks_of(content.layout, 0.75F, true);
  content.frozen["frozen"] = SharedBytes::copy_of(std::as_bytes(std::span("12345", 6)));
  return content;
}

inline Result<CheckpointContent> latest(const std::filesystem::path& run,
                                        std::vector<std::string>* warnings = nullptr) {
  std::vector<std::string> said;
  auto content = read_latest_checkpoint(run, said);
  if (warnings != nullptr) *warnings = said;
  return content;
}

}  // namespace motley::store::test

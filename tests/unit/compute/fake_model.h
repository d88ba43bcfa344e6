#pragma once
// A model that writes down what it is asked for, in words of a few letters, and does no arithmetic.

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compute/task_loop.h"

namespace motley::compute {

inline LayoutEntry entry(const char* name, std::int64_t elements) {
  LayoutEntry made;
  made.name = name;
  made.shape = {elements};
  return made;
}

/// Two large tensors with chunks of their own, and small ones in a third.
inline Layout three_chunks() {
  Result<Layout> layout = Layout::make({entry("first", 16384), entry("second", 16384), entry("bias", 4)});
  EXPECT_TRUE(layout);
  EXPECT_EQ(layout->chunks().size(), 3U);
  return *layout;
}

class FakeModel final : public DeviceModel {
 public:
  FakeModel(Flow flow, std::uint32_t group) : flow_(flow), group_(group) {}
  [[nodiscard]] const Layout& layout() const override { return layout_; }
  [[nodiscard]] Capabilities capabilities() const override { return {"cpu", "fake", 8}; }
  [[nodiscard]] Flow flow() const override { return flow_; }
  [[nodiscard]] std::uint32_t group(PassKind) const override { return group_; }
  [[nodiscard]] std::uint32_t at_once(const Task& task) const override { return most > 0 ? most : task.micro_batch; }
  [[nodiscard]] bool keeps_weights() const override { return keeps; }
  [[nodiscard]] bool starts_early(const Task&) const override { return early; }
  Status open(const Task& task, Arriving& weights) override {
    task_ = &task;
    arriving_ = &weights;
    weight_ = 0;
    return answer("open");
  }
  Status read(const MicroBatch& probable) override { return reads ? answer("read" + words_of(probable)) : Status(); }
  Status load(ChunkId first, std::span<const std::span<const float>> chunks) override {
    return answer("load" + std::to_string(first) + "+" + std::to_string(chunks.size()));
  }
  Status start() override { return answer("start"); }
  Result<Forward> forward(const MicroBatch& samples) override {
    EXPECT_EQ(samples.indices.front(), samples.at);
    EXPECT_GE(samples.wanted, samples.indices.size());
    if (samples.indices.size() > together) {
      most = together;
      log.push_back("refused");
      return Forward::refused;
    }
    weight_ += static_cast<double>(samples.indices.size());
    const Status done = answer("f" + words_of(samples));
    if (needs) {
      const Chunk& chunk = layout_.chunks()[*std::exchange(needs, std::nullopt)];
      if (!arriving_->bring(chunk.offset, chunk.offset + 1)) return Error{ErrorCode::internal, "no weights", ""};
    }
    if (!done) return done.error();
    return Forward::computed;
  }
  Status backward(Finals* finals) override {
    const Status done = answer(finals ? "last" : "b");
    if (finals) finals->placement_final(1);
    return done;
  }
  Result<Sums> sums() override { return Sums{weight_, 2 * weight_, 3, {1, 2}}; }
  Status finish(std::uint64_t count) override { return answer("end" + std::to_string(count)); }
  [[nodiscard]] std::span<const float> gradient(ChunkId chunk) const override {
    return std::span(gradient_).first(layout_.chunks()[chunk].elements);
  }
  void close() override { ++closed; }

  std::vector<std::string> log;
  std::uint32_t most = 0;             // samples of a micro-batch; 0: the task says
  std::uint32_t together = 1U << 31;  // samples that go together, as shows when they are to
  bool keeps = false, early = false, reads = false;
  std::optional<ChunkId> needs;  // the next forward()
  std::string fails;             // the call with this beginning, once
  ErrorCode code = ErrorCode::internal;
  int closed = 0;

 private:
  static std::string words_of(const MicroBatch& samples) {
    return std::to_string(samples.at) + "+" + std::to_string(samples.indices.size());
  }
  Status answer(std::string call) {
    const bool wrong = !fails.empty() && call.starts_with(fails);
    log.push_back(std::move(call));
    if (!wrong) return {};
    fails.clear();
    return Error{code, "it failed", ""};
  }

  Flow flow_;
  std::uint32_t group_;
  Layout layout_ = three_chunks();
  std::vector<float> gradient_ = std::vector<float>(16384);
  const Task* task_ = nullptr;
  Arriving* arriving_ = nullptr;
  double weight_ = 0;
};

/// Writes to the model's log what a task yields.
class LoggedSink final : public Sink {
 public:
  explicit LoggedSink(FakeModel& model) : log_(model.log) {}
  void progress(std::uint64_t done) noexcept override { log_.push_back("p" + std::to_string(done)); }
  void begin(std::uint64_t count, double weight, double loss_sum) noexcept override {
    EXPECT_EQ(weight, static_cast<double>(count));
    EXPECT_EQ(loss_sum, 2 * weight);
    log_.push_back("begin" + std::to_string(count));
  }
  void ready(ChunkId chunk, std::span<const float>) noexcept override { log_.push_back("c" + std::to_string(chunk)); }

 private:
  std::vector<std::string>& log_;
};

/// limits[k] on the k-th question, then the last for ever; claims of `refused` samples are refused, once.
class Limits final : public Stop {
 public:
  explicit Limits(std::vector<std::uint64_t> limits, std::uint64_t refused = 0)
      : limits_(std::move(limits)), refused_(refused) {}
  [[nodiscard]] std::uint64_t limit() const noexcept override {
    return limits_[std::min(asked_++, limits_.size() - 1)];
  }
  [[nodiscard]] bool claim(std::uint64_t count) const noexcept override {
    if (count != refused_) return true;
    refused_ = 0;
    return false;
  }

 private:
  std::vector<std::uint64_t> limits_;
  mutable std::size_t asked_ = 0;
  mutable std::uint64_t refused_;
};

/// Chunks that are there, or come when they are waited for, or never.
class ComingWeights final : public Weights {
 public:
  enum class Chunk : std::uint8_t { here, comes, never };
  explicit ComingWeights(std::vector<Chunk> chunks = {Chunk::here, Chunk::here, Chunk::here})
      : chunks_(std::move(chunks)) {}
  std::span<const float> get(ChunkId chunk) override {
    if (chunks_[chunk] == Chunk::never) return {};
    chunks_[chunk] = Chunk::here;
    return std::span(values).first(chunk < 2 ? 16384 : 64);
  }
  [[nodiscard]] bool here(ChunkId chunk) const override { return chunks_[chunk] == Chunk::here; }

  std::vector<float> values = std::vector<float>(16384, 1);

 private:
  std::vector<Chunk> chunks_;
};

inline std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

struct Rig {
  FakeModel model;
  ComingWeights weights;
  Task task;
  TaskLoop loop{model};

  explicit Rig(Flow flow, std::uint32_t group = 0) : model(flow, group) { task.micro_batch = 8; }
  Result<Outcome> run(std::uint64_t size, const Stop& stop) {
    indices_.resize(size);
    std::iota(indices_.begin(), indices_.end(), 0);
    task.indices = indices_;
    LoggedSink sink(model);
    return loop.run(task, weights, sink, stop);
  }

 private:
  std::vector<std::uint64_t> indices_;
};

}  // namespace motley::compute

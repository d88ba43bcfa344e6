#pragma once
// Hands the weights of a task to a model: what is there at once, the rest as they come or are asked for. Weights that
// the model still has are not handed over again. One thread.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "compute/task_io.h"
#include "motley/device_model.h"

namespace motley::compute {

class WeightLoader final : public Arriving {
 public:
  explicit WeightLoader(DeviceModel& model);

  /// Of a new task, whose `weights` live as long as it does.
  void open(std::uint64_t version, Weights& weights);
  /// Whatever the version of the next task is, its weights are others.
  void forget() noexcept { missing_ = loaded_.size() + 1; }
  /// What is there, or the first that comes: work that is claimed cannot move to others, so that nothing is claimed
  /// before weights come.
  bool bring_some();
  bool bring_all() { return bring(0, model_.layout().flat_elements()); }

  bool bring(std::uint64_t first, std::uint64_t last) override;
  [[nodiscard]] bool loaded(ChunkId chunk) const override { return loaded_[chunk]; }
  [[nodiscard]] bool complete() const override { return missing_ == 0; }

  /// Why it brought nothing: the task is abandoned, or load() failed.
  [[nodiscard]] bool abandoned() const noexcept { return abandoned_; }
  [[nodiscard]] const std::optional<Error>& failure() const noexcept { return failure_; }

 private:
  [[nodiscard]] bool holds(std::uint64_t version) const;
  [[nodiscard]] ChunkId chunk_of(std::uint64_t element) const;
  bool take(ChunkId first, ChunkId last);
  bool hand_over(ChunkId end);

  DeviceModel& model_;
  Weights* weights_ = nullptr;
  std::uint64_t version_ = 0;
  std::vector<bool> loaded_;                        // by chunk
  std::size_t missing_;                             // of them
  std::vector<std::uint32_t> probes_;               // a few words of each chunk
  std::vector<std::span<const float>> together_{};  // go in one load()
  bool abandoned_ = false;
  std::optional<Error> failure_;
};

}  // namespace motley::compute

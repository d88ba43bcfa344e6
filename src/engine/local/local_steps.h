#pragma once
// The steps that a worker makes by itself in a round: from the weights of the round, with an optimizer of its own whose
// state stays here from round to round. What comes of them is how far the weights went, times the weight of the
// samples: a sum as that of gradients is, so that it is encoded, sent and summed like one.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/local/local_trainer.h"
#include "engine/task_order.h"
#include "motley/layout.h"

namespace motley::engine {

/// What a worker's own steps are made with.
struct LocalRules {
  ps::OptimizerSpec optimizer;
  /// Of the kind outside: one that has made no step. Errors: it cannot be made.
  std::function<Result<std::shared_ptr<ps::OutsideOptimizer>>()> outside{};
  ps::ScheduleSpec schedule;  // of steps, not of rounds
  double clip_norm = 0;
  std::uint64_t batch = 0;    // samples of a step, over all workers
  std::uint64_t samples = 0;  // of an epoch
  std::uint64_t grain = 1;    // steps have whole groups of so many, apart from the last
};

class LocalSteps final : public LocalTrainer {
 public:
  LocalSteps(Layout layout, LocalRules rules) : layout_(std::move(layout)), rules_(std::move(rules)) {}

  /// A round begins: `base` are its weights, by chunk. `device`: where the steps are made, if there is room; may be
  /// null. Errors: input, where rules and weights are of no use.
  Status open(const TaskOrder& order, std::vector<SharedBytes> base, DeviceOptimizer* device);
  /// Likewise before its weights are here, from where the last round led to; false where that is not known. REQUIRES
  /// that rebase() comes before the end.
  Result<bool> open_overlapped(const TaskOrder& order, DeviceOptimizer* device);
  /// The weights of the round are not used yet. Then, once so many steps are made as it may make ahead, or sooner:
  [[nodiscard]] bool waits() const noexcept { return base_.empty(); }
  [[nodiscard]] bool made_all_overlapped() const noexcept { return next_step() >= overlapped_; }
  /// Here they are: it goes on from them and how far the steps so far led. Errors: of the device, input.
  Status rebase(std::vector<SharedBytes> base);
  /// Steps that were made before that.
  [[nodiscard]] std::uint64_t overlapped() const noexcept { return made_overlapped_; }
  /// The newest round was made there: its memory is to be given back, once.
  bool take_settled() noexcept { return std::exchange(settled_, false); }
  /// The next step of the round; steps that have no sample are left out.
  [[nodiscard]] bool more() const noexcept { return done_ < count_; }
  struct Part {
    std::uint64_t first = 0, count = 0;  // of the lease's positions
  };
  [[nodiscard]] Part part() const noexcept;
  /// It was computed, and is made. Errors: see whole() and update(). After an error only drop() is of use.
  Status took(const Outcome& outcome);
  [[nodiscard]] std::uint64_t done() const noexcept { return done_; }
  /// All steps are made. Errors: of the device.
  Status close();
  /// The round comes to nothing; what was learned of the optimizer's state in it may stay.
  void drop();
  [[nodiscard]] double weight() const noexcept { return weight_; }
  [[nodiscard]] double loss_sum() const noexcept { return loss_sum_; }
  /// What a chunk of the contribution is. REQUIRES close().
  void change(ChunkId chunk, std::span<float> out) const;

 private:
  /// An optimizer that remembers nothing. Errors: input.
  Status begin_anew(const std::vector<SharedBytes>& base);
  [[nodiscard]] std::uint64_t first_step(const TaskOrder& order) const noexcept;
  void begin_round(const TaskOrder& order, DeviceOptimizer* device);
  /// What the device has comes here.
  Status offload();
  [[nodiscard]] std::vector<SharedBytes> weights() const;
  [[nodiscard]] std::uint64_t samples() const noexcept override { return part().count; }
  [[nodiscard]] std::uint64_t cut(std::uint64_t step) const noexcept;
  /// The first that has samples, of those to come.
  [[nodiscard]] std::uint64_t next_step() const noexcept;

  Layout layout_;
  LocalRules rules_;
  bool settled_ = false;
  std::vector<SharedBytes> base_;
  std::vector<SharedBytes> from_;        // what it began with ahead
  std::optional<std::uint64_t> closed_;  // version of the round whose result is here
  std::uint64_t version_ = 0;            // of the round
  std::uint64_t overlapped_ = 0, made_overlapped_ = 0;
  std::uint64_t steps_ = 0, count_ = 0, made_ = 0, done_ = 0;
  std::uint64_t began_at_ = 0;  // version at which the optimizer remembered nothing
  double weight_ = 0, loss_sum_ = 0;
};

}  // namespace motley::engine

#pragma once
// Speeds of the workers as the coordinator measures them, and the shares that follow. One thread at a time.

#include <cstdint>
#include <span>
#include <vector>

#include "base/time.h"
#include "cluster/coordinator_machine.h"
#include "engine/coordinator.h"
#include "plan/split.h"

namespace motley::engine {

class MeasuredPace final : public cluster::Pace {
 public:
  explicit MeasuredPace(const CoordinatorOptions& options)
      : grain_(options.grain), fixed_(options.shares), timeouts_(options.timeouts) {}

  void split(PassKind kind, std::uint64_t total, std::span<const cluster::WorkerId> workers, bool reissue,
             std::span<std::uint64_t> counts) override;
  [[nodiscard]] Duration allowance(PassKind kind, cluster::WorkerId worker, std::uint64_t samples) const override;
  void record(PassKind kind, cluster::WorkerId worker, std::uint64_t samples, Duration elapsed);

 private:
  // Evaluation has no backward pass and no gradient on the wire, so it has speeds of its own.
  struct Kind {
    std::vector<plan::Speed> speeds;  // by worker - 1
    std::uint64_t total = 0;          // of the last split
    std::vector<cluster::WorkerId> workers;
    std::vector<std::uint64_t> counts;
  };
  Kind& of(PassKind kind) noexcept { return kind == PassKind::evaluate ? evaluate_ : train_; }
  [[nodiscard]] const Kind& of(PassKind kind) const noexcept { return kind == PassKind::evaluate ? evaluate_ : train_; }
  [[nodiscard]] std::optional<double> speed(const Kind& kind, cluster::WorkerId worker) const;

  std::uint64_t grain_;
  std::vector<double> fixed_;
  Timeouts timeouts_;
  Kind train_, evaluate_;
  std::vector<std::optional<double>> rates_;
};

}  // namespace motley::engine

#pragma once
// What a Server holds. Private to ps.

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "motley/bytes.h"
#include "ps/chunks.h"
#include "ps/kernels.h"
#include "ps/schedule.h"
#include "ps/server.h"
#include "ps/stretches.h"

namespace motley::ps {

struct Server::Impl {
  Impl(Layout layout, OptimizerSpec spec, ScheduleSpec schedule, double clip)
      : optimizer(std::move(spec)), rates(std::move(schedule)), chunks(std::move(layout), optimizer), clip_norm(clip) {}

  OptimizerSpec optimizer;
  Rates rates;
  Chunks chunks;
  double clip_norm = 0;
  bool clip_by_before = false;
  std::optional<double> norm_before;
  std::uint64_t version = 0;
  std::uint64_t updates = 0;                  // that the optimizer's state has seen since it was zero
  std::uint64_t updates_on_device = 0;        // of them: the newest, which only the state on a device has
  std::vector<StepScalars> scalars;           // by group, of the open step
  std::optional<float> clipped{};             // what the whole gradient of the open step is multiplied with
  std::vector<MutableBytes> outside_weights;  // likewise, by chunk, where the optimizer is from outside
  BufferPool pool;
  Stretches stretches;

  /// What a gradient of this norm is multiplied with; 1 or more: it is left as it is.
  [[nodiscard]] float clip_factor(double norm) const {
    // The operations of torch's max_norm / (norm + 1e-6) on an fp32 scalar.
    const float inverse = 1.0F / (static_cast<float>(norm) + 1e-6F);
    return inverse * static_cast<float>(clip_norm);
  }
  [[nodiscard]] GroupSpec group_now(std::size_t group) const {
    return rates.at(version, group, optimizer.groups[group]);
  }
  Status take(const Snapshot& snapshot);
  void open_step();
  /// The open step is made; its gradient was of this norm.
  void next_step(double norm);
};

}  // namespace motley::ps

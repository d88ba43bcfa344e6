#pragma once
// A task: samples of a pass at one version of the weights, of which the sum of gradients is asked for. Pure data.

#include <cstdint>
#include <span>

#include "motley/bytes.h"

namespace motley {

/// What the loss of a script gets beside the samples. Each number has its bytes, and the highest holds; 0: there is
/// none.
struct LossState {
  std::uint64_t number = 0;
  SharedBytes bytes{};
};

enum class PassKind : std::uint8_t {
  train = 1,
  evaluate = 2,
  calibrate = 3,  // what comes out is dropped, the time counts
  probe = 4,  // with weights that are made up: to compare what devices make of them. Dropout is off where that can be
};

/// A gradient comes out of it that leaves the device.
[[nodiscard]] constexpr bool gives_gradient(PassKind kind) noexcept {
  return kind == PassKind::train || kind == PassKind::probe;
}

/// What to compute: the samples `indices` (numbers in the data set), which are the positions
/// [first, first + indices.size()) of the pass.
struct Task {
  PassKind kind = PassKind::train;
  std::uint64_t version = 0;
  std::span<const std::uint64_t> indices;
  std::uint64_t first = 0;
  std::uint32_t micro_batch = 0;  // samples of a forward pass, > 0
  std::uint64_t seed = 0;  // of the run; dropout is reseeded per micro-batch from (seed, version, first position)
  bool from_end = false;   // computed from the last sample downwards: what is done is the end of `indices`
  /// Train passes: position p of the pass is position `order_first + p` of this epoch's sample order.
  std::uint64_t epoch = 0, order_first = 0;
  /// With the weights of the device's optimizer, where the gradient stays; those of its server, if the task is kept.
  bool resident = false;
  LossState state{};
  /// The gradient stays on the device, where its server sums: DeviceModel::keep().
  bool kept = false;
  /// Passes have `micro_batch` samples or so many, and no other size (Care::pass_sizes); 0: any.
  std::uint32_t odd = 0;

  /// `count` samples after the first `done`: where they start in `indices`.
  [[nodiscard]] std::uint64_t at(std::uint64_t done, std::uint64_t count) const noexcept {
    return from_end ? indices.size() - done - count : done;
  }
};

}  // namespace motley

#pragma once
// How the global batch of a run follows the gradient noise. Pure.

#include <cstdint>
#include <optional>

namespace motley::plan {

struct BatchRule {
  std::uint64_t first = 0;  // where the run starts; never less
  std::uint64_t most = 0;
  std::uint64_t grain = 1;  // batches are multiples of it, but for these two
  bool adaptive = false;    // Adam and its like: their steps do not grow with the gradient
};

struct BatchSize {
  std::uint64_t batch = 0;
  double rate = 1;  // of the learning rate to that of the first batch
};

/// The next batch, at most twice and at least half of the present one, on the way to `useful`. Empty: it stays, because
/// it is near, or changed less than some fifty steps ago.
std::optional<BatchSize> next_batch(const BatchRule& rule, std::uint64_t batch, std::uint64_t steps_since_change,
                                    double noise_scale, double useful);

/// Adam: sqrt(B / B0). SGD: as the batch, up to the noise scale; with its square root beyond (1812.06162).
double rate_for(const BatchRule& rule, std::uint64_t batch, double noise_scale) noexcept;

}  // namespace motley::plan

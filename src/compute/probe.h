#pragma once
// A probe: what a device makes of a few fixed samples with weights that are made up, so that two devices can be
// compared before one of them counts. The weights follow from the layout alone and differ from those of any run: where
// all are as at the start, many faults do not show. Of a gradient not its elements are kept but a count sketch of each
// tensor (Charikar, Chen, Farach-Colton 2002). One thread at a time.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compute/task_loop.h"
#include "motley/device_model.h"

namespace motley::compute {

constexpr std::uint64_t kProbeSamples = 4;  // the first of the training data
constexpr std::size_t kProbeSums = 8;       // of a tensor
/// What is larger is not probed: the made-up weights of all of it lie in memory meanwhile.
constexpr std::uint64_t kProbeElementsMax = std::uint64_t{1} << 28;
/// Numbers in the result of a probe of a model with so many tensors.
[[nodiscard]] std::size_t probe_numbers(const Layout& layout) noexcept;

/// The number of the loss's state; then of probe after probe weight and sum of the loss, and kProbeSums of each tensor
/// that has a gradient. Empty where it comes to something else with other random numbers, so that it says nothing of
/// the device; or where the model is too large. Of `like` samples, micro-batch, seed and state hold. REQUIRES no task
/// is open. Errors: those of the model.
Result<std::vector<float>> probe(TaskLoop& loop, const Layout& layout, const Task& like);

/// One of these alone, with the weights of `which`: weight and sum of the loss, and kProbeSums of each tensor. Of
/// `like` all holds but the kind. Errors: those of the model.
Result<std::vector<float>> probe_once(TaskLoop& loop, const Layout& layout, const Task& like, std::size_t which);
/// Of several such pairs the smallest difference counts, tensor by tensor. Empty: they say nothing.
struct PassDifference {
  double worst = 0;
  std::string tensor;
};
std::optional<PassDifference> compare_passes(const Layout& layout, std::span<const std::vector<float>> ones,
                                             std::span<const std::vector<float>> others);

/// How far two devices are apart, as a part of the norm. Each kind of weights is probed three times, and the smallest
/// difference of the three counts, since one sample at the kink of a ReLU moves a whole tensor; then the larger of
/// the kinds.
struct ProbeDifference {
  double worst = 0;
  std::string tensor;  // that is the furthest apart; "the loss"
  // Of those beyond the tolerance:
  std::size_t tensors = 0;
  std::string first;  // in the order of the forward pass
};
/// Right answers in float32 come within 1e-5, of other devices and frameworks too; the smallest fault that was looked
/// for, another epsilon in a LayerNorm, comes to 5e-3.
constexpr double kProbeTolerance = 1e-4;
/// Empty: one of them says nothing. REQUIRES both are of one state.
std::optional<ProbeDifference> compare(const Layout& layout, std::span<const float> one, std::span<const float> other);

}  // namespace motley::compute

#include "engine/coordinator_batch.h"

#include <algorithm>

#include "plan/batch_size.h"

namespace motley::engine {
namespace {

constexpr std::uint64_t kBatchMax = std::uint64_t{1} << 24;

}  // namespace

// A run whose length is a number of epochs has a schedule that ends with them, however many steps they take.
std::vector<ps::RateChange> rate_changes(std::uint64_t first_batch, bool by_samples,
                                         std::span<const BatchChange> changes) {
  std::vector<ps::RateChange> result;
  for (const BatchChange& change : changes) {
    const double steps = static_cast<double>(change.batch) / static_cast<double>(first_batch);
    result.push_back({change.first_step, by_samples ? steps : 1, change.rate});
  }
  return result;
}

BatchChoice::BatchChoice(const CoordinatorOptions& options, const MeasuredPace& pace)
    : pace_(pace),
      adapts_(options.adapt_batch),
      by_samples_(options.epochs > 0),
      first_batch_(options.global_batch),
      train_samples_(options.train_samples),
      grain_(options.grain),
      adaptive_optimizer_(options.adaptive_optimizer),
      changes_(options.batch_changes) {}

void BatchChoice::close_step(std::uint64_t samples) {
  if (const auto estimate = norms_.close(samples)) noise_.record(*estimate);
}

Noise BatchChoice::noise() const {
  Noise known{.records = noise_.records(), .scale = noise_.samples(), .useful_batch = {}};
  const std::optional<double> lost = pace_.lost_samples();
  if (known.scale && lost) known.useful_batch = plan::useful_batch(*lost, *known.scale);
  return known;
}

std::optional<BatchChange> BatchChoice::after(const StepClosed& step, bool last) const {
  if (!adapts_ || !step.noise.useful_batch || last) return std::nullopt;
  const plan::BatchRule rule{.first = std::min(first_batch_, train_samples_),
                             .most = std::min(kBatchMax, train_samples_),
                             .grain = grain_,
                             .adaptive = adaptive_optimizer_};
  const std::uint64_t since = step.step + 1 - (changes_.empty() ? 0 : changes_.back().first_step);
  const std::optional<plan::BatchSize> size =
      plan::next_batch(rule, step.global_batch, since, *step.noise.scale, *step.noise.useful_batch);
  if (!size) return std::nullopt;
  return BatchChange{step.step + 1, size->batch, size->rate};
}

std::vector<ps::RateChange> BatchChoice::change(const BatchChange& change) {
  news_ = true;
  changes_.push_back(change);
  return rate_changes(first_batch_, by_samples_, changes_);
}

}  // namespace motley::engine

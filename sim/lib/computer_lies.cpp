// What a computer makes otherwise than it should.

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "sim/computer.h"

namespace motley::sim {

void Computer::fill_by_class(const data::SampleOrder& samples, const engine::TaskOrder& order) {
  std::vector<std::uint64_t> all(BatchPlan(run_.train_samples, run_.global_batch).range(order.version).count);
  samples.fill(order.pass_first, all);
  std::vector<std::size_t> sorted(all.size());
  std::iota(sorted.begin(), sorted.end(), std::size_t{0});
  std::ranges::sort(sorted, {}, [&](std::size_t i) { return std::pair(train_->label(all[i]), i); });
  for (std::size_t i = 0; i < indices_.size(); ++i) indices_[i] = all[sorted[order.first + i]];
}

// Sums of as many samples as it has now.
void Computer::mislead() {
  constexpr std::size_t kSentMost = 32;
  if (setup_.fault == Fault::outdated) {
    sent_.push_back({gradient_.chunks, gradient_.outcome.weight});
    if (sent_.size() > kSentMost) sent_.pop_front();
  }
  const std::size_t before = std::exchange(outdate_, 0);
  double factor = std::exchange(negate_, false) ? -1 : 1;
  if (before > 0) {
    if (before >= sent_.size()) return;
    const Sent& old = sent_[sent_.size() - 1 - before];
    factor = gradient_.outcome.weight / old.weight;
    gradient_.chunks = old.chunks;
  }
  if (factor == 1 && before == 0) return;
  ++scaled_;
  for (SharedBytes& chunk : gradient_.chunks) {
    const auto sound = chunk.floats();
    std::vector<float> changed(sound.begin(), sound.end());
    for (float& value : changed) value *= static_cast<float>(factor);
    chunk = SharedBytes::copy_of(std::as_bytes(std::span(changed)));
  }
}

// If somebody asked for it.
void Computer::spoil() {
  mislead();
  if (!poison_ && scale_ == 1) return;
  const std::size_t number = scale_at_ ? *scale_at_ : random_.below(gradient_.chunks.size());
  SharedBytes& chunk = gradient_.chunks[number];
  const auto sound = chunk.floats();
  std::vector<float> spoiled(sound.begin(), sound.end());
  if (scale_ != 1 && std::ranges::any_of(spoiled, [](float value) { return value != 0; })) ++scaled_;
  for (float& value : spoiled) value *= scale_;
  if (poison_) spoiled[random_.below(spoiled.size())] = std::numeric_limits<float>::quiet_NaN();
  chunk = SharedBytes::copy_of(std::as_bytes(std::span(spoiled)));
  poison_ = false;
  scale_ = 1;
  scale_at_ = std::nullopt;
}

}  // namespace motley::sim

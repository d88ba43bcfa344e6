#include "compute/probe.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include "base/assert.h"
#include "base/count_sketch.h"
#include "base/philox.h"

namespace motley::compute {
namespace {

constexpr std::size_t kSeeds = 3;
// In the small ones an epsilon shows, which larger numbers hide.
enum class Scale : std::uint8_t { generic, small };
constexpr std::array kScales = {Scale::generic, Scale::small};
constexpr std::size_t kProbes = kSeeds * kScales.size();
constexpr float kSmall = 0.02F;
constexpr std::size_t kOfLoss = 2;  // numbers: weight and sum
// More than this between two runs of one device, with other random numbers: they matter.
constexpr double kDraws = kProbeTolerance / 4;
// Tensors whose gradient is this small beside the largest are rounding.
constexpr double kNothing = 1e-6;

std::array<std::uint32_t, 4> block(std::uint64_t key, std::uint64_t at) noexcept {
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  return philox4x32({low(at), low(at >> 32), 0, 0}, {low(key), low(key >> 32)});
}

bool trained(const Layout& layout, const Placement& place) {
  return layout.entries()[place.entry].kind == TensorKind::trained;
}

std::size_t tensors(const Layout& layout) noexcept {
  return static_cast<std::size_t>(
      std::ranges::count_if(layout.placements(), [&](const Placement& place) { return trained(layout, place); }));
}

/// Scales of layers lie around 1, biases around 0, and matrices leave the size of what goes through them.
class ProbeWeights final : public Weights {
 public:
  ProbeWeights(const Layout& layout, std::uint64_t seed, Scale scale)
      : layout_(layout), values_(layout.flat_elements()) {
    for (std::size_t i = 0; i < layout.placements().size(); ++i) {
      const Placement& place = layout.placements()[i];
      const auto [mean, reach] = range_of(layout.entries()[place.entry], scale);
      fill(std::span(values_).subspan(place.offset, place.elements), seed << 32 | i, mean, reach);
    }
  }
  std::span<const float> get(ChunkId chunk) override {
    return std::span(values_).subspan(layout_.chunks()[chunk].offset, layout_.chunks()[chunk].elements);
  }

 private:
  struct Range {
    float mean, reach;
  };
  static Range range_of(const LayoutEntry& entry, Scale scale) {
    constexpr float kUniform = 1.7320508F;  // reach of the uniform distribution with variance 1
    if (entry.kind == TensorKind::running_mean) return {0, 0};
    if (entry.kind == TensorKind::running_var) return {1, 0};
    if (entry.shape.size() > 1) {
      const auto outputs = static_cast<float>(std::max<std::int64_t>(1, entry.shape[0]));
      const float inputs = std::max(1.0F, static_cast<float>(entry.elements()) / outputs);
      return {0, kUniform / std::sqrt(inputs) * (scale == Scale::small ? kSmall : 1)};
    }
    return std::string_view(entry.name).ends_with("weight") ? Range{1, 0.5F} : Range{0, 0.2F * kUniform};
  }
  static void fill(std::span<float> values, std::uint64_t key, float mean, float reach) {
    std::array<std::uint32_t, 4> numbers{};
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i % numbers.size() == 0) numbers = block(key, i / numbers.size());
      const auto steps = static_cast<std::int32_t>(numbers[i % numbers.size()] >> 8U) - (1 << 23);
      values[i] = mean + reach * (static_cast<float>(steps) * 0x1p-23F);
    }
  }

  const Layout& layout_;
  std::vector<float> values_;
};

class Sketcher final : public Sink {
 public:
  explicit Sketcher(const Layout& layout) : layout_(layout), sums_(layout.placements().size()) {}
  void progress(std::uint64_t) noexcept override {}
  void begin(std::uint64_t, double weight, double loss_sum) noexcept override { loss_ = {weight, loss_sum}; }
  void ready(ChunkId id, std::span<const float> gradient) noexcept override {
    const Chunk& chunk = layout_.chunks()[id];
    const auto [first, last] = layout_.placements_of(id);
    for (std::size_t i = first; i < last; ++i) {
      const Placement& place = layout_.placements()[i];
      if (!trained(layout_, place)) continue;
      const std::uint64_t begin = std::max(place.offset, chunk.offset);
      const std::uint64_t end = std::min(place.offset + place.elements, chunk.offset + chunk.elements);
      add(i, begin - place.offset, gradient.subspan(begin - chunk.offset, end - begin));
    }
  }
  void append_to(std::vector<float>& out) const {
    for (const double value : loss_) out.push_back(static_cast<float>(value));
    for (std::size_t i = 0; i < sums_.size(); ++i)
      if (trained(layout_, layout_.placements()[i]))
        for (const double sum : sums_[i]) out.push_back(static_cast<float>(sum));
  }

 private:
  void add(std::size_t placement, std::uint64_t first, std::span<const float> values) noexcept {
    SketchPlaces where{};
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint64_t at = first + i;
      if (i == 0 || at % kSketchBlock == 0) where = sketch_places(placement, at / kSketchBlock, 0);
      sketch(sums_[placement], where[at % kSketchBlock], values[i]);
    }
  }

  const Layout& layout_;
  std::array<double, kOfLoss> loss_{};
  std::vector<std::array<double, kProbeSums>> sums_;  // of placements
};

double square(std::span<const float> sums) noexcept {
  double square = 0;
  for (const float sum : sums) square += static_cast<double>(sum) * sum;
  return square;
}

/// As a part of the larger; 0 where both are nothing beside `largest`.
double apart(std::span<const float> one, std::span<const float> other, double largest) noexcept {
  double between = 0;
  for (std::size_t i = 0; i < one.size(); ++i) {
    const double difference = static_cast<double>(one[i]) - other[i];
    between += difference * difference;
  }
  const double norm = std::sqrt(std::max(square(one), square(other)));
  if (norm <= kNothing * largest) return 0;
  return std::sqrt(between) / norm;
}

/// Of one probe: the loss, and each tensor. `differences` keeps the smaller.
void keep_smaller(std::span<const float> one, std::span<const float> other, std::span<double> differences) noexcept {
  const auto tensor = [](std::span<const float> all, std::size_t i) {
    return all.subspan(kOfLoss + i * kProbeSums, kProbeSums);
  };
  const std::size_t count = differences.size() - 1;
  double largest = 0;
  for (std::size_t i = 0; i < count; ++i)
    largest = std::max(largest, std::sqrt(std::max(square(tensor(one, i)), square(tensor(other, i)))));
  const auto of = [&](std::size_t i) {
    return i == 0 ? apart(one.first(kOfLoss), other.first(kOfLoss), 0)
                  : apart(tensor(one, i - 1), tensor(other, i - 1), largest);
  };
  for (std::size_t i = 0; i <= count; ++i) differences[i] = std::min(differences[i], of(i));
}

bool finite(std::span<const float> numbers) noexcept {
  return std::ranges::all_of(numbers, [](float x) { return std::isfinite(x); });
}

}  // namespace

std::size_t probe_numbers(const Layout& layout) noexcept {
  return 1 + kProbes * (kOfLoss + kProbeSums * tensors(layout));
}

Result<std::vector<float>> probe(TaskLoop& loop, const Layout& layout, const Task& like) {
  std::vector<float> found;
  if (layout.flat_elements() > kProbeElementsMax || like.indices.empty()) return found;
  found.reserve(probe_numbers(layout));
  found.push_back(static_cast<float>(like.state.number));
  const std::size_t each = kOfLoss + kProbeSums * tensors(layout);
  // One more than all: the first again, with other random numbers.
  for (std::size_t i = 0; i <= kProbes; ++i) {
    const std::size_t which = i % kProbes;
    ProbeWeights weights(layout, which, kScales[which / kSeeds]);
    Sketcher sketcher(layout);
    Task task;
    task.kind = PassKind::probe;
    task.indices = like.indices;
    task.micro_batch = like.micro_batch;
    task.odd = like.odd;
    task.seed = like.seed + i / kProbes;
    task.state = like.state;
    const Result<Outcome> outcome = loop.run(task, weights, sketcher, NoStop());
    if (!outcome) return outcome.error();
    if (i < kProbes) {
      sketcher.append_to(found);
      continue;
    }
    std::vector<float> again;
    sketcher.append_to(again);
    std::vector<double> differences(1 + tensors(layout), std::numeric_limits<double>::infinity());
    keep_smaller(std::span(found).subspan(1, each), again, differences);
    if (!(std::ranges::max(differences) <= kDraws)) found.clear();
  }
  return found;
}

Result<std::vector<float>> probe_once(TaskLoop& loop, const Layout& layout, const Task& like, std::size_t which) {
  ProbeWeights weights(layout, which, Scale::generic);
  Sketcher sketcher(layout);
  Task task = like;
  task.kind = PassKind::probe;
  const Result<Outcome> outcome = loop.run(task, weights, sketcher, NoStop());
  if (!outcome) return outcome.error();
  std::vector<float> found;
  sketcher.append_to(found);
  return found;
}

namespace {

/// Of what is trained, by entry: in the order of the forward pass.
std::vector<std::pair<std::uint32_t, std::string>> names_of(const Layout& layout) {
  std::vector<std::pair<std::uint32_t, std::string>> names;
  for (const Placement& place : layout.placements())
    if (trained(layout, place)) names.emplace_back(place.entry, layout.entries()[place.entry].name);
  return names;
}

}  // namespace

std::optional<PassDifference> compare_passes(const Layout& layout, std::span<const std::vector<float>> ones,
                                             std::span<const std::vector<float>> others) {
  std::vector<double> differences(1 + tensors(layout), std::numeric_limits<double>::infinity());
  for (std::size_t i = 0; i < ones.size(); ++i) {
    if (!finite(ones[i]) && !finite(others[i])) return std::nullopt;
    keep_smaller(ones[i], others[i], differences);
  }
  const auto worst = static_cast<std::size_t>(std::ranges::max_element(differences) - differences.begin());
  return PassDifference{differences[worst], worst == 0 ? "the loss" : names_of(layout)[worst - 1].second};
}

std::optional<ProbeDifference> compare(const Layout& layout, std::span<const float> one, std::span<const float> other) {
  const std::size_t count = tensors(layout), each = kOfLoss + kProbeSums * count;
  if (one.size() != 1 + kProbes * each || other.size() != one.size()) return std::nullopt;
  if (!finite(one) && !finite(other)) return std::nullopt;
  std::vector<double> differences(1 + count), of_scale(1 + count);
  for (std::size_t i = 0; i < kProbes; ++i) {
    if (i % kSeeds == 0) std::ranges::fill(of_scale, std::numeric_limits<double>::infinity());
    keep_smaller(one.subspan(1 + i * each, each), other.subspan(1 + i * each, each), of_scale);
    if (i % kSeeds != kSeeds - 1) continue;
    // What is not finite on one side alone is NaN, and stays infinitely far.
    for (std::size_t k = 0; k <= count; ++k) differences[k] = std::max(differences[k], of_scale[k]);
  }
  const std::vector<std::pair<std::uint32_t, std::string>> names = names_of(layout);
  ProbeDifference found;
  std::uint32_t first = std::numeric_limits<std::uint32_t>::max();
  const auto worst = static_cast<std::size_t>(std::ranges::max_element(differences) - differences.begin());
  found.worst = differences[worst];
  found.tensor = worst == 0 ? "the loss" : names[worst - 1].second;
  for (std::size_t k = 1; k <= count; ++k) {
    if (differences[k] <= kProbeTolerance) continue;
    ++found.tensors;
    if (names[k - 1].first >= first) continue;
    first = names[k - 1].first;
    found.first = names[k - 1].second;
  }
  return found;
}

}  // namespace motley::compute

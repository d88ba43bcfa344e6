#include "softmax/softmax.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "base/assert.h"
#include "base/philox.h"

namespace motley::softmax {
namespace {

constexpr std::size_t kLanes = 8;
constexpr float kInitialScale = 0.01F;

// Eight partial sums in a fixed order: the compiler may use vectors without changing the result.
float dot(const float* a, const float* b, std::size_t size) noexcept {
  std::array<float, kLanes> sums{};
  std::size_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  for (; i < size; ++i) sums[i % kLanes] += a[i] * b[i];
  return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

void add_scaled(float* __restrict sums, float factor, const float* __restrict values, std::size_t size) noexcept {
  for (std::size_t i = 0; i < size; ++i) sums[i] += factor * values[i];
}

}  // namespace

Result<std::unique_ptr<SoftmaxRegression>> SoftmaxRegression::make(std::shared_ptr<const Blobs> train,
                                                                   std::shared_ptr<const Blobs> test,
                                                                   std::uint64_t seed) {
  MOTLEY_ASSERT(train != nullptr);
  MOTLEY_ASSERT(test == nullptr || (test->features() == train->features() && test->classes() == train->classes()));
  const auto classes = static_cast<std::int64_t>(train->classes());
  std::vector<LayoutEntry> entries(2);
  entries[0].name = "weight";
  entries[0].shape = {classes, static_cast<std::int64_t>(train->features())};
  entries[1].name = "bias";
  entries[1].shape = {classes};
  Result<Layout> layout = Layout::make(std::move(entries));
  if (!layout) return std::move(layout).error();
  return std::unique_ptr<SoftmaxRegression>(
      new SoftmaxRegression(std::move(train), std::move(test), seed, std::move(*layout)));
}

SoftmaxRegression::SoftmaxRegression(std::shared_ptr<const Blobs> train, std::shared_ptr<const Blobs> test,
                                     std::uint64_t seed, Layout layout)
    : train_(std::move(train)),
      test_(std::move(test)),
      seed_(seed),
      layout_(std::move(layout)),
      classes_(train_->classes()),
      features_(train_->features()),
      weights_(layout_.flat_elements()),
      gradient_(layout_.flat_elements()),
      residual_(classes_),
      exponentials_(classes_) {
  for (const Placement& placement : layout_.placements()) {
    (placement.entry == 0 ? weight_at_ : bias_at_) = placement.offset;
  }
}

Capabilities SoftmaxRegression::capabilities() const { return {"cpu", "softmax regression on one thread", 256}; }

std::vector<float> SoftmaxRegression::initial_weights() const {
  std::vector<float> flat(layout_.flat_elements());
  if (seed_ == 0) return flat;
  Philox random(seed_);
  for (std::size_t i = 0; i < classes_ * features_; ++i) {
    flat[weight_at_ + i] = kInitialScale * static_cast<float>(random.gaussian());
  }
  return flat;
}

SoftmaxRegression::Scored SoftmaxRegression::score(std::span<const float> x, std::size_t label) {
  MOTLEY_ASSERT(label < classes_);
  for (std::size_t c = 0; c < classes_; ++c) {
    residual_[c] = dot(&weights_[weight_at_ + c * features_], x.data(), features_) + weights_[bias_at_ + c];
  }
  const auto best = std::max_element(residual_.begin(), residual_.end());
  const double largest = *best;
  double sum = 0;
  for (std::size_t c = 0; c < classes_; ++c) sum += exponentials_[c] = std::exp(residual_[c] - largest);
  const Scored scored{std::log(sum) - (residual_[label] - largest),
                      static_cast<std::size_t>(best - residual_.begin()) == label};
  for (std::size_t c = 0; c < classes_; ++c) residual_[c] = static_cast<float>(exponentials_[c] / sum);
  residual_[label] -= 1.0F;
  return scored;
}

void SoftmaxRegression::add_gradient(std::span<const float> x) {
  for (std::size_t c = 0; c < classes_; ++c) {
    add_scaled(&gradient_[weight_at_ + c * features_], residual_[c], x.data(), features_);
    gradient_[bias_at_ + c] += residual_[c];
  }
}

Status SoftmaxRegression::open(const Task& task, Arriving& /*weights*/) {
  task_ = &task;
  if (task.kind != PassKind::evaluate || test_ != nullptr) return {};
  return Error{ErrorCode::input, "expected a test data set for an evaluation, found none",
               "give the run a test data set"};
}

Status SoftmaxRegression::load(ChunkId first, std::span<const std::span<const float>> chunks) {
  auto to = weights_.begin() + static_cast<std::ptrdiff_t>(layout_.chunks()[first].offset);
  for (const std::span<const float> values : chunks) to = std::copy(values.begin(), values.end(), to);
  return {};
}

Status SoftmaxRegression::start() {
  std::fill(gradient_.begin(), gradient_.end(), 0.0F);
  sums_ = {};
  return {};
}

Result<Forward> SoftmaxRegression::forward(const MicroBatch& samples) {
  const bool evaluate = task_->kind == PassKind::evaluate;
  const std::size_t count = samples.indices.size();
  const Blobs& set = evaluate ? *test_ : *train_;
  for (std::size_t k = 0; k < count; ++k) {
    const std::uint64_t number = samples.indices[task_->from_end ? count - 1 - k : k];
    const std::span<const float> x = set.sample(number);
    const Scored scored = score(x, set.label(number));
    sums_.loss_sum += scored.loss;
    if (evaluate)
      sums_.correct += scored.correct ? 1 : 0;
    else
      add_gradient(x);
  }
  sums_.weight += static_cast<double>(count);
  return Forward::computed;
}

std::span<const float> SoftmaxRegression::gradient(ChunkId chunk) const {
  const Chunk& place = layout_.chunks()[chunk];
  return std::span(gradient_).subspan(place.offset, place.elements);
}

}  // namespace motley::softmax

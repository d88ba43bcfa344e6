#pragma once
// A device that has the faults of Metal, under a clock of its own. The gradient of a sample is its number and one,
// times the weights, with what rounding does to it.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/fault_words.h"
#include "base/philox.h"
#include "compute/device_care.h"
#include "compute/pass_trial.h"
#include "fake_model.h"

namespace motley::compute {

struct MacFaults {
  double after_other_size = 1;  // times the gradient of a pass of more than `rows` samples after one of another size
  std::uint64_t rows = 16;      // as rows times length is it on Metal
  double lost = 0;              // of passes whose result was never written
  double too_long = 0;          // seconds from which on a pass is given up, while the screen is in use; 0: never
};

class Mac final : public DeviceModel {
 public:
  explicit Mac(MacFaults faults = {}, double per_sample = 1e-3, std::uint64_t seed = 1)
      : faults_(faults), per_sample_(per_sample), random_(seed, 0) {}
  [[nodiscard]] const Layout& layout() const override { return layout_; }
  [[nodiscard]] Capabilities capabilities() const override { return {"mps", "simulated", 4096}; }
  [[nodiscard]] Care care() const override { return {2, 0.5, true}; }
  [[nodiscard]] Flow flow() const override { return Flow::behind; }
  [[nodiscard]] std::uint32_t group(PassKind kind) const override {
    return kind == PassKind::evaluate ? 0 : group_size;
  }
  Status open(const Task&, Arriving&) override {
    lost_ = false;
    return {};
  }
  Status load(ChunkId first, std::span<const std::span<const float>> chunks) override {
    auto at = weights_.begin() + static_cast<std::ptrdiff_t>(layout_.chunks()[first].offset);
    for (const auto& chunk : chunks) at = std::ranges::copy(chunk, at).out;
    return {};
  }
  Status start() override {
    std::ranges::fill(gradient_, 0.0F);
    sums_ = {};
    return {};
  }
  Result<Forward> forward(const MicroBatch& samples) override {
    pass_ = samples;
    const std::uint64_t size = samples.indices.size() * samples.repeats;
    const double took = kLaunch + per_sample_ * static_cast<double>(size);
    clock += took;
    longest = std::max(longest, took);
    sizes.insert(size);
    if (faults_.too_long > 0 && took >= faults_.too_long)
      return Error{ErrorCode::internal,
                   "Error: command buffer exited with error status: Impacting Interactivity "
                   "(0000000e:kIOGPUCommandBufferCallbackErrorImpactingInteractivity)",
                   ""};
    return Forward::computed;
  }
  Status backward(Finals*) override {
    const std::uint64_t size = pass_.indices.size() * pass_.repeats;
    const bool wrong = before_ != 0 && before_ != size && size > faults_.rows;
    before_ = size;
    if (faults_.lost > 0 && random_.uniform() < faults_.lost) {
      lost_ = true;
      return {};
    }
    double each = 0;
    for (const std::uint64_t sample : pass_.indices) each += static_cast<double>(sample + 1);
    sums_.weight += static_cast<double>(pass_.indices.size());
    sums_.loss_sum += each * weights_[0];
    each *= (wrong ? faults_.after_other_size : 1) * (1 + kRounding * (2 * random_.uniform() - 1));
    for (std::size_t i = 0; i < gradient_.size(); ++i) gradient_[i] += static_cast<float>(each) * weights_[i];
    return {};
  }
  Result<Sums> sums() override { return sums_; }
  Status finish(std::uint64_t) override { return {}; }
  [[nodiscard]] std::span<const float> gradient(ChunkId chunk) const override {
    return std::span(gradient_).subspan(layout_.chunks()[chunk].offset, layout_.chunks()[chunk].elements);
  }
  std::optional<Fault> fault() override {
    if (!lost_) return std::nullopt;
    return Fault{Fault::Kind::stale, "a sum came to 3, expected 4"};
  }

  double clock = 0, longest = 0;
  std::set<std::uint64_t> sizes;  // of passes
  std::uint32_t group_size = 0;

 private:
  static constexpr double kLaunch = 2e-3, kRounding = 1e-6;
  static Layout small() {
    Result<Layout> layout = Layout::make({entry("weight", 24), entry("bias", 4)});
    EXPECT_TRUE(layout);
    return *layout;
  }

  MacFaults faults_;
  double per_sample_;
  Philox random_;
  Layout layout_ = small();
  std::vector<float> weights_ = std::vector<float>(layout_.flat_elements()), gradient_ = weights_;
  Sums sums_;
  MicroBatch pass_{};
  std::uint64_t before_ = 0;  // samples of the pass before
  bool lost_ = false;
};

inline std::vector<std::uint64_t> first_samples(std::uint64_t count) {
  std::vector<std::uint64_t> indices(count);
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

inline Result<PassesTried> try_passes_of(Mac& mac, TaskLoop& loop, std::uint32_t most, std::uint32_t group = 1) {
  const std::vector<std::uint64_t> indices = first_samples(4096);
  Task like;
  like.indices = indices;
  like.seed = 1;
  return try_passes(loop, mac.layout(), like,
                    {.care = mac.care(),
                     .most = most,
                     .group = group,
                     .fits = [](std::uint32_t, std::uint32_t) { return true; },
                     .clock = [&mac] { return mac.clock; }});
}

}  // namespace motley::compute

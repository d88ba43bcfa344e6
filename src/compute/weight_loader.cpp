#include "compute/weight_loader.h"

#include <algorithm>
#include <bit>

#include "base/assert.h"

namespace motley::compute {
namespace {

constexpr std::size_t kProbesPerChunk = 32;

/// Words spread over `values`, the first and the last among them.
template <class Visit>
void probe(std::span<const float> values, Visit&& visit) {
  for (std::size_t i = 0; i < kProbesPerChunk; ++i) {
    const std::size_t at = values.empty() ? 0 : (values.size() - 1) * i / (kProbesPerChunk - 1);
    visit(values.empty() ? 0U : std::bit_cast<std::uint32_t>(values[at]));
  }
}

}  // namespace

WeightLoader::WeightLoader(DeviceModel& model)
    : model_(model),
      loaded_(model.layout().chunks().size()),
      missing_(loaded_.size()),
      probes_(loaded_.size() * kProbesPerChunk) {
  together_.reserve(loaded_.size());
}

// A restarted coordinator may reach the same version with other weights; an update moves nearly every element, so a few
// words tell.
bool WeightLoader::holds(std::uint64_t version) const {
  if (missing_ > 0 || version != version_ || !model_.keeps_weights()) return false;
  bool equal = true;
  std::size_t at = 0;
  for (ChunkId chunk = 0; equal && chunk < loaded_.size(); ++chunk) {
    probe(weights_->get(chunk), [&](std::uint32_t word) { equal = equal && word == probes_[at++]; });
  }
  return equal;
}

void WeightLoader::open(std::uint64_t version, Weights& weights) {
  weights_ = &weights;
  abandoned_ = false;
  failure_.reset();
  if (holds(version)) return;
  version_ = version;
  loaded_.assign(loaded_.size(), false);
  missing_ = loaded_.size();
}

bool WeightLoader::bring_some() {
  for (ChunkId chunk = 0; chunk < loaded_.size(); ++chunk)
    if (!loaded_[chunk] && weights_->here(chunk) && !take(chunk, chunk)) return false;
  return missing_ < loaded_.size() || take(0, 0);
}

bool WeightLoader::bring(std::uint64_t first, std::uint64_t last) {
  if (first >= last || missing_ == 0) return !abandoned_ && !failure_;
  return take(chunk_of(first), chunk_of(last - 1));
}

ChunkId WeightLoader::chunk_of(std::uint64_t element) const {
  const std::span<const Chunk> chunks = model_.layout().chunks();
  const auto next = std::ranges::upper_bound(chunks, element, {}, &Chunk::offset);
  MOTLEY_ASSERT(next != chunks.begin());
  return static_cast<ChunkId>(next - chunks.begin() - 1);
}

// What else is there already goes along, and nothing that is there waits for what is not.
bool WeightLoader::take(ChunkId first, ChunkId last) {
  for (ChunkId chunk = first; chunk <= last; ++chunk) {
    if (loaded_[chunk]) continue;
    for (; chunk < loaded_.size() && !loaded_[chunk]; ++chunk) {
      const bool here = weights_->here(chunk);
      if (!here && (chunk > last || !hand_over(chunk))) break;
      const std::span<const float> values = weights_->get(chunk);
      abandoned_ = values.empty();
      if (abandoned_) break;
      MOTLEY_ASSERT(values.size() == model_.layout().chunks()[chunk].elements);
      together_.push_back(values);
    }
    if (!hand_over(chunk)) return false;
  }
  return true;
}

/// Those before `end`.
bool WeightLoader::hand_over(ChunkId end) {
  const auto first = static_cast<ChunkId>(end - together_.size());
  if (!together_.empty() && !abandoned_ && !failure_) {
    if (Status done = model_.load(first, together_); !done) failure_ = std::move(done).error();
    for (ChunkId chunk = first; chunk < end && !failure_; ++chunk) {
      std::size_t at = chunk * kProbesPerChunk;
      probe(together_[chunk - first], [&](std::uint32_t word) { probes_[at++] = word; });
      loaded_[chunk] = true;
      --missing_;
    }
  }
  together_.clear();
  return !abandoned_ && !failure_;
}

}  // namespace motley::compute

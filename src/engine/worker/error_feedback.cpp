#include "engine/worker/error_feedback.h"

#include <cmath>
#include <span>

#include "codec/codec.h"
#include "ps/kernels.h"

namespace motley::engine {

void ErrorFeedback::admitted(std::uint64_t run, std::uint32_t incarnation) {
  const std::pair now{run, incarnation};
  if (std::exchange(coordinator_, now) == now) return;
  slots_.clear();
  lease_ = 0;
}

SharedBytes ErrorFeedback::encode(const wire::Grant& lease, ChunkId chunk, std::span<const float> gradient) {
  const auto codec = static_cast<codec::CodecId>(lease.codec);
  MutableBytes body = pool_.take(codec::encoded_bytes(codec, gradient.size()));
  if (!lease.feedback) {
    codec::encode(codec, gradient, {}, body.bytes(), {});
    return std::move(body).seal();
  }
  if (std::exchange(lease_, lease.lease) != lease.lease) forget_sent();
  if (chunk >= slots_.size()) slots_.resize(chunk + 1);
  Slot& slot = slots_[chunk];
  // A coordinator that says it is the one before may come with another model.
  if (slot.residual.size() != gradient.size()) slot.residual.clear();
  slot.left.resize(gradient.size());
  codec::encode(codec, gradient, slot.residual, body.bytes(), slot.left);
  slot.sent = true;
  left2_ += ps::squares(slot.left);
  gradient2_ += ps::squares(gradient);
  return std::move(body).seal();
}

void ErrorFeedback::forget_sent() {
  for (Slot& slot : slots_) slot.sent = false;
  left2_ = gradient2_ = 0;
}

double ErrorFeedback::residual_ratio() const { return gradient2_ > 0 ? std::sqrt(left2_ / gradient2_) : 0; }

void ErrorFeedback::taken(const wire::Taken& taken) {
  if (taken.lease != lease_) return;
  for (ChunkId chunk = 0; chunk < slots_.size(); ++chunk) {
    const std::size_t byte = chunk / 8;
    const bool discarded = byte < taken.discarded.size() && (taken.discarded[byte] >> chunk % 8 & 1) != 0;
    if (std::exchange(slots_[chunk].sent, false) && !discarded) std::swap(slots_[chunk].residual, slots_[chunk].left);
  }
}

std::span<const float> ErrorFeedback::residual(ChunkId chunk) const {
  return chunk < slots_.size() ? std::span<const float>(slots_[chunk].residual) : std::span<const float>();
}

}  // namespace motley::engine

#include "engine/error_feedback.h"

#include <cmath>
#include <span>

#include "codec/codec.h"
#include "modes/work/pass.h"
#include "ps/kernels.h"

namespace motley::engine {
namespace {

// Of what top64 leaves out, which waits for many rounds, so much is kept for the next one (arXiv:2603.08163).
constexpr float kKeptOfTop = 0.95F;

void set_right(std::vector<float>& values, const std::vector<float>& more, const std::vector<float>& less) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += more[i] - less[i];
}

}  // namespace

void ErrorFeedback::admitted(std::uint64_t run, std::uint32_t incarnation) {
  const std::pair now{run, incarnation};
  if (std::exchange(coordinator_, now) == now) return;
  slots_.clear();
  lease_ = 0;
}

void ErrorFeedback::connected() noexcept {
  for (Slot& slot : slots_)
    for (Sent& sent : slot.sent) sent.before = true;
}

SharedBytes ErrorFeedback::encode(const wire::Grant& lease, ChunkId chunk, std::span<const float> gradient) {
  const auto codec = static_cast<codec::CodecId>(lease.codec);
  MutableBytes body = pool_.take(codec::encoded_bytes(codec, gradient.size()));
  if (!lease.feedback) {
    codec::encode(codec, gradient, {}, body.bytes(), {});
    return std::move(body).seal();
  }
  if (std::exchange(lease_, lease.lease) != lease.lease) left2_ = gradient2_ = 0;
  if (chunk >= slots_.size()) slots_.resize(chunk + 1);
  Slot& slot = slots_[chunk];
  // A coordinator that says it is the one before may come with another model.
  if (slot.residual.size() != gradient.size()) slot = {};
  slot.residual.resize(gradient.size());
  auto& [first, second] = slot.sent;
  // Where nothing was said of one, it was cancelled.
  while (second.lease != 0 || (first.lease != 0 && !may_still_count(first, lease))) resolve(slot, 0, false);
  Sent& sent = first.lease == 0 ? first : second;
  sent.lease = lease.lease;
  sent.pass = lease.pass;
  sent.before = false;
  sent.left.resize(gradient.size());
  codec::encode(codec, gradient, &sent == &first ? slot.residual : first.left, body.bytes(), sent.left);
  left2_ += ps::squares(sent.left);
  gradient2_ += ps::squares(gradient);
  if (codec == codec::CodecId::top64)
    for (float& value : sent.left) value *= kKeptOfTop;
  return std::move(body).seal();
}

// Those of a helper, of two steps one after the other.
bool ErrorFeedback::may_still_count(const Sent& sent, const wire::Grant& next) {
  const modes::PassId pass = modes::PassId::unpack(next.pass);
  const bool ahead = pass.kind == PassKind::train && pass.number > next.version;
  return ahead && !sent.before && sent.pass + 1 == next.pass;
}

void ErrorFeedback::resolve(Slot& slot, std::size_t which, bool counts) {
  auto& [first, second] = slot.sent;
  const bool both = second.lease != 0;
  if (which == 0) {
    if (counts) {
      std::swap(slot.residual, first.left);
    } else if (both) {
      set_right(second.left, slot.residual, first.left);
    }
    std::swap(first, second);
  } else if (counts) {  // the first one goes on from what this one left
    set_right(slot.residual, second.left, first.left);
    std::swap(first.left, second.left);
  }
  second.lease = 0;
}

double ErrorFeedback::residual_ratio() const { return gradient2_ > 0 ? std::sqrt(left2_ / gradient2_) : 0; }

void ErrorFeedback::taken(const wire::Taken& taken) {
  for (ChunkId chunk = 0; chunk < slots_.size(); ++chunk) {
    const std::size_t byte = chunk / 8;
    const bool discarded = byte < taken.discarded.size() && (taken.discarded[byte] >> chunk % 8 & 1) != 0;
    auto& sent = slots_[chunk].sent;
    for (std::size_t which = 0; which < sent.size(); ++which)
      if (taken.lease != 0 && sent[which].lease == taken.lease) resolve(slots_[chunk], which, !discarded);
  }
}

std::span<const float> ErrorFeedback::residual(ChunkId chunk) const {
  return chunk < slots_.size() ? std::span<const float>(slots_[chunk].residual) : std::span<const float>();
}

}  // namespace motley::engine

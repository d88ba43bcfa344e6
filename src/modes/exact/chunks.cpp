#include "modes/exact/chunks.h"

namespace motley::modes {

void Chunks::look(ChunkId chunk) {
  if (!work_.coverage.ready(chunk)) return;
  work_.coverage.set_reduced(chunk);
  if (work_.training()) return ready_.push_back(chunk);
  work_.act(ActionKind::close_evaluation, {.code = ReasonCode::all_covered}).chunk = chunk;
  work_.state.enter(PassState::closing);
  ends_.end_open();
}

void Chunks::look_at_all() {
  if (!work_.coverage.weight_known()) return;
  for (ChunkId chunk = 0; chunk < work_.coverage.chunks(); ++chunk) look(chunk);
}

void Chunks::settle(Time now) {
  if (ready_.empty()) return;
  const Reason reason{.code = ReasonCode::all_covered};
  const bool whole = run_.version < run_.config.whole_until;
  for (const ChunkId chunk : ready_)
    work_.act(whole ? ActionKind::reduce : ActionKind::finish_chunk, reason).chunk = chunk;
  summed_ += static_cast<std::uint32_t>(ready_.size());
  ready_.clear();
  const bool last = summed_ == run_.config.chunks;
  if (whole && last) work_.act(ActionKind::finish_all, reason).chunk = run_.config.first_applied;
  if (!whole || last) updated_ = summed_;
  if (updated_ > 0 && work_.state == PassState::collecting) work_.state.enter(PassState::updating);
  if (!last) return;
  work_.state.enter(PassState::closing);
  ends_.report_all_late(now);
  ends_.end_open();
  work_.act(ActionKind::close_step, reason);
}

}  // namespace motley::modes

#include "modes/exact/chunks.h"

#include "base/assert.h"

namespace motley::modes {

void Chunks::reduce_if_ready(ChunkId chunk) {
  if (!work_.coverage.ready(chunk)) return;
  work_.coverage.set_reduced(chunk);
  const bool training = work_.training();
  Action& action =
      work_.act(training ? ActionKind::reduce : ActionKind::close_evaluation, {.code = ReasonCode::all_covered});
  action.chunk = chunk;
  if (training) return;
  work_.state.enter(PassState::closing);
  ends_.end_open();
}

void Chunks::reduce_all_ready() {
  if (!work_.coverage.weight_known()) return;
  for (ChunkId chunk = 0; chunk < work_.coverage.chunks(); ++chunk) reduce_if_ready(chunk);
}

void Chunks::on(const ChunkReduced& event) {
  if (run_.finished) return;
  MOTLEY_ASSERT(work_.training() && work_.coverage.reduced(event.chunk));
  ++reduced_;
  MOTLEY_ASSERT(reduced_ <= run_.config.chunks);
  if (run_.version >= run_.config.whole_until) {
    if (work_.state == PassState::collecting) work_.state.enter(PassState::updating);
    work_.act(ActionKind::apply, {.code = ReasonCode::all_covered}).chunk = event.chunk;
  } else if (reduced_ == run_.config.chunks) {
    work_.act(ActionKind::clip, {.code = ReasonCode::all_covered});
  }
}

void Chunks::on(const Clipped&) {
  if (run_.finished) return;
  MOTLEY_ASSERT(work_.training() && reduced_ == run_.config.chunks && applied_ == 0);
  work_.state.enter(PassState::updating);
  for (ChunkId i = 0; i < run_.config.chunks; ++i)
    work_.act(ActionKind::apply, {.code = ReasonCode::all_covered}).chunk =
        (run_.config.first_applied + i) % run_.config.chunks;
}

void Chunks::on(const ChunkApplied&, Time now) {
  if (run_.finished) return;
  MOTLEY_ASSERT(work_.state == PassState::updating && applied_ < run_.config.chunks);
  ++applied_;
  if (applied_ < run_.config.chunks) return;
  work_.state.enter(PassState::closing);
  ends_.report_all_late(now);
  ends_.end_open();
  work_.act(ActionKind::close_step, {.code = ReasonCode::all_covered});
}

}  // namespace motley::modes

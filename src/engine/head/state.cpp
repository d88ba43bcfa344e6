#include "engine/head/state.h"

#include "engine/loss_state.h"

namespace motley::engine {

void StateSender::send(const Session& to) {
  if (state_.number == 0 || to.gone) return;
  if (pieces_.empty()) pieces_ = pieces_of(state_);
  wire::FrameHeader header;
  header.type = wire::FrameType::control;
  for (const SharedBytes& piece : pieces_) sessions_.send(to, header, piece, Lane::control);
}

void StateSender::change(SharedBytes bytes) {
  state_ = {state_.number + 1, std::move(bytes)};
  pieces_.clear();
  for (const auto& [id, session] : sessions_.all())
    if (session.admitted()) send(session);
}

}  // namespace motley::engine

#include <array>
#include <string_view>

#include "base/assert.h"
#include "cluster/worker.h"

namespace motley::cluster {

std::string_view to_word(WorkerState state) noexcept {
  constexpr std::array<std::string_view, 5> kWords{"connecting", "loading", "syncing", "member", "leaving"};
  return kWords[static_cast<std::size_t>(state)];
}

WorkerAction& WorkerActions::add(WorkerAction::Kind kind, WorkerReason reason) {
  MOTLEY_ASSERT(size_ < kMax);
  WorkerAction& action = actions_[size_++];
  action = WorkerAction{};
  action.kind = kind;
  action.reason = reason;
  return action;
}

bool bye_means_again(std::string_view code) noexcept { return code == "lost" || code == "full" || code == "busy"; }

}  // namespace motley::cluster

#include <array>

#include "base/assert.h"
#include "cluster/worker.h"

namespace motley::cluster {
namespace {

using Kind = WorkerAction::Kind;

std::string_view what(Kind kind) noexcept {
  constexpr std::array<std::string_view, 18> kWords{"load model and data",
                                                    "report ready",
                                                    "report the version held",
                                                    "ask for all weights",
                                                    "send a heartbeat",
                                                    "report progress",
                                                    "freeze the range",
                                                    "report the lease done",
                                                    "report the lease failed",
                                                    "ask for no more work",
                                                    "say good-bye",
                                                    "move to a version",
                                                    "forget the weights",
                                                    "start computing",
                                                    "limit the computation",
                                                    "end with the micro-batch in hand",
                                                    "count the step",
                                                    "close the channel"};
  return kWords[static_cast<std::size_t>(kind)];
}

std::string_view why(WorkerReason reason) noexcept {
  constexpr std::array<std::string_view, 22> kWords{"",
                                                    "run and model are known",
                                                    "model and data are ready",
                                                    "all its chunks are here",
                                                    "the pass was closed",
                                                    "chunks of a closed version did not come",
                                                    "they are not what the coordinator holds",
                                                    "a lease at the version held was granted",
                                                    "the coordinator moved the end of the lease",
                                                    "the coordinator took the lease back",
                                                    "its version has gone by",
                                                    "a micro-batch is done",
                                                    "the computation ended",
                                                    "the computation failed",
                                                    "the channel closed",
                                                    "nothing was heard for too long",
                                                    "the coordinator ended the session",
                                                    "bytes arrived that make no sense",
                                                    "model or data cannot be used here",
                                                    "the user wants to leave",
                                                    "it is time for one",
                                                    "too many leases are waiting"};
  return kWords[static_cast<std::size_t>(reason)];
}

}  // namespace

std::string_view to_word(WorkerState state) noexcept {
  constexpr std::array<std::string_view, 5> kWords{"connecting", "loading", "syncing", "member", "leaving"};
  return kWords[static_cast<std::size_t>(state)];
}

std::string to_sentence(const WorkerAction& action) {
  std::string text(what(action.kind));
  switch (action.kind) {
    case Kind::send_synced:
    case Kind::adopt:
      text += " (" + std::to_string(action.version) + ")";
      break;
    case Kind::step_done:
      text += " (version " + std::to_string(action.version) + ", " + std::to_string(action.count) + " samples)";
      break;
    case Kind::finish_early:
      text += " (task " + std::to_string(action.number) + ")";
      break;
    case Kind::limit_task:
      text += " (task " + std::to_string(action.number) + " to " + std::to_string(action.count) + " samples)";
      break;
    case Kind::send_progress:
    case Kind::send_begin:
    case Kind::send_finish:
      text += " (lease " + std::to_string(action.lease.lease) + ", " + std::to_string(action.count) + " samples)";
      break;
    case Kind::send_failed:
      text += " (lease " + std::to_string(action.lease.lease) + ")";
      break;
    case Kind::start_task:
      text += " (task " + std::to_string(action.number) + ": lease " + std::to_string(action.lease.lease) +
              ", positions " + std::to_string(action.lease.first) + " + " + std::to_string(action.lease.count) +
              " at version " + std::to_string(action.lease.version) + ")";
      break;
    case Kind::disconnect:
      text += action.reconnect ? " and try again" : " for good";
      break;
    default:
      break;
  }
  text += ": ";
  text += why(action.reason);
  return text;
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

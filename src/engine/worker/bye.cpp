#include "engine/worker/bye.h"

#include <string>
#include <utility>

#include "base/assert.h"
#include "wire/limits.h"

namespace motley::engine {

using cluster::WorkerReason;

namespace {

ErrorCode code_of_bye(const std::string& code) {
  if (code == "lost") return ErrorCode::network;
  if (code == "full" || code == "busy") return ErrorCode::busy;
  if (code == "protocol" || code == "model" || code == "data" || code == "run") return ErrorCode::mismatch;
  if (code == "diverged") return ErrorCode::diverged;
  return ErrorCode::refused;
}

}  // namespace

Error error_of_bye(const wire::Bye& bye) {
  if (bye.code == "done" || bye.code == "leave") return {ErrorCode::interrupted, {}, {}};
  std::string message = "the coordinator ended the session (" + bye.code + ")";
  if (const std::string reason = wire::reason_of(bye); !reason.empty()) message += ": " + reason;
  return {code_of_bye(bye.code), std::move(message), bye.hint};
}

wire::Bye bye_of(WorkerReason reason, const std::optional<Error>& why) {
  // Who came for the files of the script alone has what it wanted, and no model to prepare.
  const bool has_all = why && why->code == ErrorCode::interrupted;
  if (reason == WorkerReason::leave_asked || has_all) return {"leave", {}, {}, {}};
  MOTLEY_ASSERT(why);
  const bool data = why->code == ErrorCode::input || why->code == ErrorCode::io || why->code == ErrorCode::network;
  return {data ? "data" : "model",
          {},
          why->message.substr(0, wire::kStringBytesMax),
          why->hint.substr(0, wire::kStringBytesMax)};
}

Error error_of_disconnect(const cluster::WorkerAction& action, const std::optional<Error>& why, Duration silence) {
  // Who wants to leave is content to lose the channel: the coordinator gives the lease to others.
  const bool lost = action.reason == WorkerReason::channel_lost || action.reason == WorkerReason::silence ||
                    (action.reason == WorkerReason::said_bye && why &&
                     (why->code == ErrorCode::network || why->code == ErrorCode::busy));
  switch (lost && !action.reconnect ? WorkerReason::leave_asked : action.reason) {
    case WorkerReason::leave_asked:
      return {ErrorCode::interrupted, {}, {}};
    case WorkerReason::silence:
      return {ErrorCode::network,
              "nothing was heard from the coordinator for " + std::to_string(seconds(silence)).substr(0, 4) + " s",
              "check the network between the two machines"};
    default:
      return why.value_or(Error{ErrorCode::network, "the channel to the coordinator closed", {}});
  }
}

}  // namespace motley::engine

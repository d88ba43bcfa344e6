#pragma once
// How a session of a worker ends, in words: what it says to the coordinator, and what the coordinator's good-bye or
// silence means to the user. Pure.

#include <optional>

#include "base/time.h"
#include "cluster/worker_action.h"
#include "motley/result.h"
#include "wire/messages.h"

namespace motley::engine {

/// What the coordinator's Bye means. An empty message: the session ended well.
Error error_of_bye(const wire::Bye& bye);
/// REQUIRES `why`, unless the worker was asked to leave.
wire::Bye bye_of(cluster::WorkerReason reason, const std::optional<Error>& why);
/// Why the channel is given up: the action's reason, and what is known of it. `silence`: what was waited for.
Error error_of_disconnect(const cluster::WorkerAction& action, const std::optional<Error>& why, Duration silence);

}  // namespace motley::engine

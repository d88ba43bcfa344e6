#pragma once
// Tries addresses in turn until one answers with the right key. Private to tcp/.

#include <chrono>
#include <optional>
#include <vector>

#include "transport/tcp/hub.h"

namespace motley::transport {

void start_connecting(Hub& hub, std::vector<Endpoint> endpoints, std::optional<Digest> pin,
                      std::chrono::milliseconds timeout, ConnectHandler on_done);

}  // namespace motley::transport

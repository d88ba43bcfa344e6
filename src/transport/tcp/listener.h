#pragma once
// Accepts connections. Private to tcp/.

#include <memory>

#include "transport/tcp/hub.h"

namespace motley::transport {

Result<std::unique_ptr<Listener>> make_listener(Hub& hub, Endpoint endpoint, AcceptHandler on_accept);

}  // namespace motley::transport

#pragma once
// What the system says of the interface by which it reaches somebody. Internal to transport/. Blocking; any thread.

#include <string>

#include "transport/interface.h"

namespace motley::transport {

/// `host`: a numeric address. Nothing is sent; without a name where the system does not tell.
Interface interface_of_route(const std::string& host, const std::string& port);

/// The interface by which the rest of the world is reached; empty: there is none, or it is virtual, as a VPN's is.
std::string outward_interface();

}  // namespace motley::transport

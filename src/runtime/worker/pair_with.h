#pragma once
// From no token to one: pairing with the head at an address, by the code that it shows. Blocking; any thread.

#include <string>

#include "fleet/token.h"
#include "motley/result.h"
#include "transport/crypto.h"
#include "transport/tcp/tcp.h"

namespace motley::runtime {

/// "desktop", "192.168.1.7", "192.168.1.7:7200", "fd00::7", "[fd00::7]:7200"; without a port kDefaultPort. Errors:
/// usage.
Result<transport::Endpoint> head_endpoint(const std::string& text);

/// `name`: of this machine; `own`: what it shows. Errors: refused (a wrong code, on either side; no code is good there
/// now), network, protocol.
Result<fleet::JoinToken> pair_with(const transport::Endpoint& head, const std::string& code, const std::string& name,
                                   const transport::Identity& own);

}  // namespace motley::runtime

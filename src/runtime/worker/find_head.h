#pragma once
// From no token to one: which heads of the local network pair, and pairing with one of them. Blocking; any thread.

#include <functional>
#include <string>
#include <vector>

#include "base/time.h"
#include "discovery/heads.h"
#include "fleet/token.h"
#include "motley/result.h"
#include "runtime/stop.h"
#include "transport/crypto.h"

namespace motley::runtime {

/// Asks the network, and again after each second, for so long or until `enough` says so. By name, then by key. Errors:
/// network, interrupted.
Result<std::vector<discovery::FoundHead>> find_heads(
    Duration patience, const std::function<bool(const std::vector<discovery::FoundHead>&)>& enough, StopSource& stop);

/// "desktop"; "desktop/0a1b2c3d" where others of those have that name too.
std::string name_among(const discovery::FoundHead& head, const std::vector<discovery::FoundHead>& all);
/// Those that the word names: by their name, or with the first letters of their key behind it.
std::vector<discovery::FoundHead> heads_named(const std::string& word, const std::vector<discovery::FoundHead>& all);

/// `name`: of this machine; `own`: what it shows. Errors: refused (a wrong code, on either side; no code is good there
/// now), network, protocol.
Result<fleet::JoinToken> pair_with(const discovery::FoundHead& head, const std::string& code, const std::string& name,
                                   const transport::Identity& own);

}  // namespace motley::runtime

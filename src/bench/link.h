#pragma once
// A link between two machines, measured: one listens, the other measures against it. Each function blocks the thread
// that calls it; events come from threads of the transport, one at a time.

#include <functional>
#include <string>

#include "bench/diagnosis.h"
#include "fleet/token.h"
#include "runtime/stop.h"

namespace motley::bench {

struct LinkListenOptions {
  std::string listen;      // as of motley train
  std::string token_file;  // empty: the token is for `opened` to show
  bool plaintext = false;
  bool once = false;  // ends when the first that came has gone
};

struct LinkListenEvents {
  std::function<void(const fleet::JoinToken& token)> opened;
  std::function<void(const std::string& peer)> measuring;
  std::function<void(const std::string& peer)> left;
};

/// Until `stop` (which is no error), or as `once` says. Errors: busy, network, input, io.
Status serve_link(const LinkListenOptions& options, const LinkListenEvents& events, runtime::StopSource& stop);

inline constexpr double kLinkSecondsMax = 20;

struct LinkOptions {
  fleet::JoinToken token;
  double seconds = 2;  // of each of the three phases that load the link; at most kLinkSecondsMax
};

struct LinkReport {
  std::string peer, cipher;  // cipher: empty without encryption
  LinkFigures figures;
};

/// `note` is called from this thread. Errors: network, refused, protocol, interrupted.
Result<LinkReport> measure_link(const LinkOptions& options, const std::function<void(const std::string&)>& note,
                                runtime::StopSource& stop);

}  // namespace motley::bench

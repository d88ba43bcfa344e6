#pragma once
// This machine's devices as workers of somebody else's run. Blocks until the run is done, all were refused, or stop.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "fleet/token.h"
#include "runtime/model_provider.h"
#include "runtime/resource_policy.h"
#include "runtime/stop.h"
#include "runtime/worker/link_change.h"
#include "runtime/worker/yield_rule.h"

namespace motley::runtime {

inline constexpr int kJoinNice = 10;  // of a worker on somebody's machine, unless it is said otherwise

struct JoinOptions {
  fleet::JoinToken token;
  std::string token_file{};  // where it was read from; empty: from no file
  std::vector<std::string> devices;
  unsigned threads = 0;
  std::string name;
  std::vector<std::string> overrides;  // train.micro_batch: what may differ from machine to machine
  ResourcePolicy resource_policy{.nice = kJoinNice};
  YieldOptions yield;
  std::optional<Duration> patience{};  // WorkerHostOptions::patience
};

/// For people and for --json; each called from one thread at a time.
struct JoinEvents {
  std::function<void(const std::string& text)> note;
  std::function<void(const std::string& worker, const std::string& device, LinkChange change, const std::string& why)>
      link;
  std::function<void(const std::string& worker, std::uint64_t version, std::uint64_t samples)> step;
  /// Nobody answered to the token, or it was refused, and its file has this one by now: what is called ends with an
  /// error after it, and is to be called again.
  std::function<void(const fleet::JoinToken& token)> other_token;
};

/// Waits for FILE (until `stop`), then reads the token in it.
Result<fleet::JoinToken> wait_for_token_file(const std::string& file, StopSource& stop,
                                             const std::function<void(const std::string&)>& note);

/// The files of the run's script, as python/motley/_machines/_fetch.py packs them. Errors: mismatch (it is a run of no
/// script).
Result<SharedBytes> fetch_script(const JoinOptions& options, const JoinEvents& events, StopSource& stop);

Status join(const JoinOptions& options, ModelProvider& provider, const JoinEvents& events, StopSource& stop);

}  // namespace motley::runtime

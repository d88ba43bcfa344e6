#pragma once
// A whole run on the head: data, model, coordinator, local workers, listener, files. Blocks until it is over.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "config/config.h"
#include "engine/head/coordinator.h"
#include "report/sink.h"
#include "runtime/model_provider.h"
#include "runtime/resource_policy.h"
#include "runtime/stop.h"
#include "transport/tcp/tcp.h"

namespace motley::runtime {

inline constexpr std::uint16_t kDefaultPort = 7117;

class Offers;
class Reception;

struct TrainOptions {
  std::string target;     // of config::Asked; may be empty with `resume`
  std::string join_with;  // what `motley join` says behind the token: a script and its arguments
  std::string text;       // of config::Asked, as what follows
  std::vector<std::string> overrides;
  std::string run_dir;  // empty: runs/NAME-1, -2, …
  std::string here{};   // below which directory that is; empty: this process's
  bool resume = false;
  std::string listen;  // "ADDRESS:PORT"; empty: every address, kDefaultPort or any free port
  std::string token_file;
  std::shared_ptr<Reception> reception;      // kept for a later run; empty: of this one alone
  std::shared_ptr<const Offers> offers{};    // files for who joins; may be empty
  std::optional<Duration> token_good_for{};  // else as long as the run
  bool new_token = false;                    // with `resume`: the old one is not good any more
  bool pair = false;                         // shows a code that machines without a token pair by
  bool verbose = false;                      // shows all ways in
  bool plaintext = false;
  std::vector<std::string> devices;  // empty: accelerators, or the CPU where there are none; "none"
  unsigned threads = 0;              // of a CPU worker; 0: all cores
  std::string name;                  // of this machine; empty: its host name
  ResourcePolicy resource_policy;    // of its workers
  /// After each evaluation, on the coordinator's thread, where the model's rates follow them:
  /// CoordinatorOutput::rates_after().
  std::function<std::vector<double>(const report::EvalDone&)> rates_after;
  modes::Pauses pauses = modes::Pauses::never;
};

/// The error that ended the run was not yet told to `sink`.
Status train(const TrainOptions& options, ModelProvider& provider, report::Sink& sink, StopSource& stop);

/// "[::1]:7117", "0.0.0.0:7117", ":7117", "7117".
Result<transport::Endpoint> parse_endpoint(const std::string& text);

}  // namespace motley::runtime

#pragma once
// A run of a program's own model: train() is its head, join() lends a machine's devices to it. Both block until the run
// is over; one of each may run in a process at a time, on different threads. `model` outlives the call.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "motley/events.h"
#include "motley/model.h"
#include "motley/result.h"

namespace motley {

namespace runtime {
class StopSource;
}

/// Ends train() and join() from another thread; not from a signal handler. Copies are one and the same.
class Stopper {
 public:
  Stopper();
  /// The head ends after the open step, with a checkpoint; a worker after the micro-batch in hand. Any thread.
  void request();
  [[nodiscard]] runtime::StopSource& source() const { return *source_; }  // for Motley itself

 private:
  std::shared_ptr<runtime::StopSource> source_;
};

/// How the devices of this machine are used.
struct DeviceOptions {
  std::vector<std::string> names{};  // of Model::devices(); empty: accelerators, else the processor
  unsigned threads = 0;              // of a processor; 0: all
  double duty = 1;                   // of the time, above 0: they compute at most that part of it
  int nice = 0;                      // of the threads that compute; 0 leaves them as they are
};

struct RunOptions {
  std::string name = "model";           // of the run, for people and for its directory
  std::vector<std::string> settings{};  // "train.epochs=3", "wire.gradients=int8": docs/reference/keys.md
  std::string directory{};              // empty: runs/NAME-1, -2, …
  bool resume = false;                  // go on with the run in `directory`
  std::string listen{};                 // "ADDRESS:PORT"; empty: every address, port 7117 or a free one
  std::string token_file{};             // where the token is written as well, until the run is over
  bool pair = false;                    // machines may join with an address and a code of six digits
  std::string machine{};                // this one's name; empty: its host name
  DeviceOptions devices{};              // names {"none"}: this machine trains nothing itself
  Events events{};
  Stopper stop{};
};

struct Trained {
  std::string directory;       // the run's
  std::uint64_t steps = 0;     // of the weights
  std::vector<float> weights;  // Model::layout().flat_elements(): the last ones; empty if there was nothing left to do
};

/// Errors: input, usage (a setting, the model, the directory), busy (the port, the directory), memory, diverged,
/// interrupted (a request to stop came), and those of the model. The directory has the newest checkpoint then.
Result<Trained> train(Model& model, const RunOptions& options);

struct JoinOptions {
  std::vector<std::string> settings{};  // train.micro_batch alone: all others are the head's
  std::string machine{};                // this one's name; empty: its host name
  DeviceOptions devices{.nice = 10};    // of somebody's machine
  Events events{};
  Stopper stop{};
};

/// `invitation`: a token, or "ADDRESS CODE" as the head shows them. What the head sends is never run; it is compared
/// with the model here, and taken as numbers. The process is not confined: the model is its own.
/// Errors: network (no answer), refused (the head says no), mismatch (another model, other data, other arguments),
/// protocol, interrupted, and those of the model.
Status join(Model& model, const std::string& invitation, const JoinOptions& options);

}  // namespace motley

#pragma once
// What a run tells the program that makes it or works for it. Plain values: they may be kept.

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "motley/result.h"

namespace motley {

/// The head's door is open; the first step comes when train.min_workers are there.
struct RunBegun {
  std::string directory;  // the run's: checkpoints, ledger, token
  std::string token;      // for join()
  std::string code{};     // "123456", of RunOptions::pair: join() takes "ADDRESS CODE", too. Empty: there is none
  std::vector<std::string> addresses{};  // of this machine; the one that others likely reach comes first
  std::uint64_t parameters = 0, global_batch = 0;
  std::uint64_t first_step = 0, steps = 0;  // first_step > 0: the run goes on
};

/// A code was used, or is over: this one is good now.
struct CodeShown {
  std::string code;
  std::vector<std::string> addresses{};
};

/// On the head: a device of the run. In join(): this machine's, as it sees its link.
struct WorkerChanged {
  std::string worker;         // "desktop/cuda:0"
  std::string device{};       // "cuda:0"
  std::string description{};  // of the device
  std::string change;         // joined | left | lost | excluded | readmitted | refused | parked
  std::string reason{};       // for people; may be empty
};

struct StepMade {
  std::uint64_t step = 0, epoch = 0, samples = 0;  // counted from 0
  double loss = 0;                                 // mean over the samples of the step
  double seconds = 0, learning_rate = 0;
};

struct Evaluated {
  std::uint64_t step = 0, epoch = 0, samples = 0;  // after so many steps
  double loss = 0;
  std::vector<std::pair<std::string, double>> scores{};  // means over the test samples, by the names of Model::scores()
};

struct CheckpointWritten {
  std::uint64_t step = 0;
  std::string path;
};

/// In join(): a part of a step was computed here and sent.
struct Contributed {
  std::string worker;
  std::uint64_t step = 0, samples = 0;
};

/// For people: one sentence.
struct Note {
  std::string text;
};

/// The run goes on without what has failed. What ends it is returned.
struct Failed {
  Error error;
};

using Event =
    std::variant<RunBegun, CodeShown, WorkerChanged, StepMade, Evaluated, CheckpointWritten, Contributed, Note, Failed>;

/// From one thread at a time, which waits meanwhile: it returns quickly, and does not throw.
using Events = std::function<void(const Event&)>;

/// Lambdas as one visitor: std::visit(overloaded{[](const StepMade& step) {…}, [](const auto&) {}}, event).
template <class... F>
struct overloaded : F... {  // NOLINT(readability-identifier-naming)
  using F::operator()...;
};
template <class... F>
overloaded(F...) -> overloaded<F...>;

}  // namespace motley

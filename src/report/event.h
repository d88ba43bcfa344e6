#pragma once
// What a run reports to the outside, one struct a kind. JSON has those of the program's contract, people see some more,
// scripts get others. Values: names instead of numbers, nothing that points into the coordinator.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "motley/bytes.h"
#include "motley/result.h"

namespace motley::report {

struct RunStarted {
  std::string run{};   // hex
  std::string name{};  // recipe or file, for people
  std::string directory{};
  std::uint64_t parameters = 0, global_batch = 0, seed = 0, steps_per_epoch = 0, samples = 0;
  std::uint64_t steps = 0;       // 0: as many as it takes to measure
  std::uint64_t first_step = 0;  // > 0: resumed
  std::string join{};            // token; empty when it went to a file
  std::string token_file{};      // where it went
  std::string pairing_code{};    // "123456"; empty: there is none
  std::string join_with{};       // what a worker says behind the token
  std::vector<std::string>
      addresses{};       // where people join with the code: the one that others likely reach comes first
  bool verbose = false;  // tells people all ways in
  bool plaintext = false;
  bool tested = false;  // evaluates at its eval points
};

/// In place of the code that was shown before.
struct CodeShown {
  std::string code{};
  std::vector<std::string> addresses{};  // as of RunStarted
  std::uint64_t until_unix_s = 0;
  std::string reason{};  // what the one before is
  bool verbose = false;
};

struct WorkerChanged {
  std::string worker{}, machine{}, device{}, description{};
  std::string change{};  // joined | left | lost | excluded | readmitted | refused | parked
  std::string reason{};
};

struct WorkerPart {
  std::string worker{};
  std::uint64_t samples = 0;
  double compute_s = 0, wait_s = 0;
  double finish_s = 0;                               // from its grant until its contribution had arrived
  std::uint64_t sent_bytes = 0, received_bytes = 0;  // by the worker, on the wire, since the last step event
  std::uint64_t ahead = 0;  // of its steps in a round: made before it had the weights of the round
};

/// How much the gradients of samples differ, in samples; zero: not known.
struct Noise {
  std::uint64_t records = 0;  // steps that said something
  double scale = 0;
  double useful_batch = 0;  // the global batch that makes the most progress a second
};

struct StepDone {
  std::uint64_t step = 0, epoch = 0, samples = 0;
  double loss = 0, seconds = 0, samples_per_s = 0, learning_rate = 0;
  Noise noise{};
  std::uint64_t global_batch = 0, steps = 0;  // now; steps: until the end of the run
  std::vector<WorkerPart> workers{};
  double gradient_norm = 0;  // before clipping; 0 without clipping
  double update_s = 0;       // since the last contribution was in; 0: one worker made it alone
};

/// Once a run, in plain words: a setting that would make it faster.
struct AdviceGiven {
  std::string set{};       // "train.clip_norm_of=previous"
  double saves_s = 0;      // of a step, at the least
  double step_s = 0;       // that takes so long
  std::string sentence{};  // what it does, and what it changes
};

/// What train.mode=auto takes, or would take.
struct ModeChosen {
  std::string mode{};                                        // "exact", "rounds"
  std::string sentence{};                                    // and why
  double exact_samples_per_s = 0, rounds_samples_per_s = 0;  // predicted; 0: no round would have several devices
  std::optional<double> rounds_loss_percent{};  // higher than with exact steps; nothing: not known, or not possible
};

/// What a run in a mode would come to.
struct ModeOutlook {
  std::string mode{};             // "exact", "rounds"
  std::uint64_t local_steps = 0;  // of a round; 0: there are none
  double samples_per_s = 0;
  double computing = 0;                  // part of the time, in the mean over devices by their speed
  double bytes_a_day = 0;                // on the wire, both ways, all machines
  std::optional<double> loss_percent{};  // likely higher than with exact steps; nothing: not known
  std::string price{};                   // that in words
};

struct PlanMade {
  struct Share {
    std::string worker{};
    std::uint64_t samples = 0;  // 0: left out
    double alone_samples_per_s = 0, compute_s = 0, exposed_s = 0;
    std::string codec{};
    double up_bytes_per_s = 0, down_bytes_per_s = 0;  // of its link; 0: not known
  };
  std::uint64_t global_batch = 0;
  double step_s = 0, samples_per_s = 0;  // predicted
  std::string fastest_alone{};           // worker
  double fastest_alone_samples_per_s = 0;
  std::vector<Share> shares{};
  std::string recommendation{}, limit{};
  Noise noise{};
  std::vector<ModeOutlook> modes{};  // of `motley plan`: those that are possible
};

struct EvalDone {
  std::uint64_t step = 0, epoch = 0, samples = 0;
  double loss = 0, accuracy = 0;
  bool has_accuracy = true;                              // false for regressions: null in JSON
  bool exact = true;                                     // of the weights that are saved, not of what workers hold
  std::vector<std::pair<std::string, double>> scores{};  // of a script, by name: means over the samples
};

struct Done {
  std::uint64_t steps = 0, samples = 0;
  double seconds = 0, samples_per_s = 0, loss = 0, accuracy = 0;
  bool has_accuracy = false;
  double predicted_samples_per_s = 0;  // 0: nothing was predicted
  Noise noise{};
  std::string checkpoint{};
  std::uint64_t verified = 0;      // samples that were computed once more, to compare workers
  std::uint64_t local_steps = 0;   // of a round, which a step was; 0: steps were exact
  std::optional<double> cosine{};  // then: between what two workers came to in a round, in the mean
};

struct CheckpointWritten {
  std::uint64_t step = 0;
  std::string path{};
};

/// What the head holds at a version, by chunk. Taking one copies nothing.
struct ModelState {
  std::uint64_t version = 0;
  std::vector<SharedBytes> weights{};
  std::map<std::string, std::vector<SharedBytes>> optimizer{};  // by name; while the run is paused, else empty
};

/// The end of an epoch, every train.evaluate_every steps where the run is paused at eval points, and the end of the
/// run.
struct EvalPointReached {
  std::uint64_t epoch = 0, version = 0, samples = 0;  // since the eval point before, as are the next three
  double loss = 0, seconds = 0, learning_rate = 0;    // learning_rate: at the first step
  ModelState state{};
};

/// The run waits at a version until it is told to go on, and no worker of this process computes.
struct Paused {
  std::uint64_t version = 0;
  bool step = false;  // after a step, else at an eval point
  ModelState state{};
};

/// The run ends with it, or goes on without what has failed.
struct Failure {
  Error error;
};

/// For people only: one sentence.
struct Note {
  std::string text{};
};

/// What the run waits for right now; empty: nothing.
struct Waiting {
  std::string text{};
};

using Event = std::variant<RunStarted, CodeShown, WorkerChanged, PlanMade, StepDone, AdviceGiven, ModeChosen, EvalDone,
                           CheckpointWritten, EvalPointReached, Paused, Done, Failure, Note, Waiting>;

/// Lambdas as one visitor: overloaded{[](const StepDone& step) {…}, [](const auto&) {}}.
template <class... F>
struct overloaded : F... {  // NOLINT(readability-identifier-naming)
  using F::operator()...;
};
template <class... F>
overloaded(F...) -> overloaded<F...>;

}  // namespace motley::report

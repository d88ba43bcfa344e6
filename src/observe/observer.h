#pragma once
// What a run reports to the outside: one call an event of the program's JSON contract, plus what only people want to
// see. Calls come from one thread at a time (the coordinator's); implementations must return quickly and never fail.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "motley/result.h"

namespace motley::observe {

struct RunStarted {
  std::string run;   // hex
  std::string name;  // recipe or file, for people
  std::string directory;
  std::uint64_t parameters = 0, global_batch = 0, seed = 0, steps_per_epoch = 0, samples = 0;
  std::uint64_t steps = 0;       // 0: as many as it takes to measure
  std::uint64_t first_step = 0;  // > 0: resumed
  std::string join;              // token; empty when it went to a file
  std::string token_file;        // where it went
  std::string join_with;         // what a worker says behind the token
  bool plaintext = false;
};

struct WorkerChanged {
  std::string worker, machine, device, description;
  std::string change;  // joined | left | lost | excluded | readmitted | refused | parked
  std::string reason;
};

struct WorkerPart {
  std::string worker;
  std::uint64_t samples = 0;
  double compute_s = 0, wait_s = 0;
  double finish_s = 0;                               // from its grant until its contribution had arrived
  std::uint64_t sent_bytes = 0, received_bytes = 0;  // by the worker, on the wire, since the last step event
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
  Noise noise;
  std::uint64_t global_batch = 0, steps = 0;  // now; steps: until the end of the run
  std::vector<WorkerPart> workers;
};

struct PlanMade {
  struct Share {
    std::string worker;
    std::uint64_t samples = 0;  // 0: left out
    double alone_samples_per_s = 0, compute_s = 0, exposed_s = 0;
    std::string codec;
    double up_bytes_per_s = 0, down_bytes_per_s = 0;  // of its link; 0: not known
  };
  std::uint64_t global_batch = 0;
  double step_s = 0, samples_per_s = 0;  // predicted
  std::string fastest_alone;             // worker
  double fastest_alone_samples_per_s = 0;
  std::vector<Share> shares;
  std::string recommendation, limit;
  Noise noise;
};

struct EvalDone {
  std::uint64_t step = 0, epoch = 0, samples = 0;
  double loss = 0, accuracy = 0;
  bool has_accuracy = true;                            // false for regressions: null in JSON
  bool exact = true;                                   // of the weights that are saved, not of what workers hold
  std::vector<std::pair<std::string, double>> scores;  // of a script, by name: means over the samples
};

struct Done {
  std::uint64_t steps = 0, samples = 0;
  double seconds = 0, samples_per_s = 0, loss = 0, accuracy = 0;
  bool has_accuracy = false;
  double predicted_samples_per_s = 0;  // 0: nothing was predicted
  Noise noise;
  std::string checkpoint;
};

class Observer {
 public:
  virtual ~Observer() = default;
  virtual void run(const RunStarted& event) = 0;
  virtual void worker(const WorkerChanged& event) = 0;
  virtual void plan(const PlanMade& event) = 0;
  virtual void step(const StepDone& event) = 0;
  virtual void eval(const EvalDone& event) = 0;
  virtual void checkpoint(std::uint64_t step, const std::string& path) = 0;
  virtual void done(const Done& event) = 0;
  virtual void error(const Error& error) = 0;
  /// For people only: one sentence.
  virtual void note(const std::string& text) = 0;
  /// What the run waits for right now; empty: nothing.
  virtual void waiting(const std::string& text) = 0;
  virtual void download(const std::string& file, std::uint64_t done, std::uint64_t total) = 0;
};

/// One JSON object a line on `descriptor` (standard output), nothing else there. NaN and infinities become null; losses
/// have enough digits to compare to 1e-6 (shortest round trip).
std::unique_ptr<Observer> make_json_observer(int descriptor);

/// Plain lines for logs and pipes: runs, workers, evaluations, checkpoints, and a step line at most every
/// `seconds_between`.
std::unique_ptr<Observer> make_plain_observer(int descriptor, double seconds_between = 2.0);

/// An observer whose lines move, beside which others write to the same terminal. Calls may come from any thread, also
/// at the same time.
class Display : public Observer {
 public:
  /// Takes away what moves, until show() has been called as often: meanwhile others may write whole lines.
  virtual void hide() = 0;
  /// `begun`: the start of a line that others have not ended yet, without control characters; shown with what moves.
  virtual void show(const std::string& begun) = 0;
  /// What moves is left as it is, and what comes is written below it. Idempotent.
  virtual void end() = 0;
};

/// A live display for a terminal: progress bar with step, loss (with a small history), samples/s and time left; a line
/// per worker with its share and what it waits for; evaluations and changes scroll above it. Redraws at most 10 times a
/// second, where there is something new, and leaves the terminal as it found it.
std::unique_ptr<Display> make_terminal_observer(int descriptor);

/// Calls both, in order. Owns them.
std::unique_ptr<Observer> make_tee(std::unique_ptr<Observer> first, std::unique_ptr<Observer> second);

}  // namespace motley::observe

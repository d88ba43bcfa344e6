#pragma once
// The state of a run, folded from its events: whoever looks late sees what somebody sees who was there from the
// beginning. A value without clock or threads; a copy is a snapshot. Bounded, however long the run.

#include <deque>
#include <map>
#include <optional>
#include <string>

#include "report/curve.h"
#include "report/event.h"

namespace motley::report {

inline constexpr std::size_t kBoardWorkersMax = 1024;     // of more, who has left first is forgotten first
inline constexpr std::size_t kBoardScoresMax = 64;        // further names have no curve
inline constexpr std::size_t kBoardMessagesMax = 256;     // the newest
inline constexpr std::size_t kBoardMessageMax = 1 << 14;  // bytes; the rest is cut

struct Board {
  struct Worker {
    std::string machine{}, device{}, description{};
    std::string change{}, reason{};  // the newest: WorkerChanged
    bool present = false;
    std::uint64_t changed = 0;                         // numbered over all workers
    WorkerPart part{};                                 // in the newest step
    std::uint64_t sent_bytes = 0, received_bytes = 0;  // of all steps
  };
  struct Message {
    std::uint64_t number = 0;  // from 1 on
    std::string lines{};       // with their ends
  };

  std::optional<RunStarted> run{};  // its steps and batch: as of now
  std::uint64_t steps_done = 0;
  std::optional<StepDone> step{};  // the newest, as are the next
  std::optional<EvalDone> evaluation{};
  std::optional<CheckpointWritten> checkpoint{};
  std::optional<PlanMade> plan{};
  std::optional<Done> done{};
  std::map<std::string, Worker> workers{};  // by name
  double samples_per_s = 0;                 // smoothed
  Curve loss{}, learning_rate{}, speed{};   // by step; speed: samples/s
  Curve test_loss{}, accuracy{};            // by version
  std::map<std::string, Curve> scores{};    // by name
  std::string waiting{};
  std::deque<Message> messages{};  // in order
  std::uint64_t messages_said = 0;
  std::uint64_t changes = 0;  // of workers
};

/// Takes what has happened onto the board.
void fold(Board& board, const Event& event);

}  // namespace motley::report

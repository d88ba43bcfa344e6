#pragma once
// What a worker's computation is told to do, and what it declares as it goes. Values.

#include <cstdint>
#include <vector>

#include "base/batch_plan.h"
#include "motley/bytes.h"
#include "motley/task.h"

namespace motley::engine {

/// A task for the computation. Positions are of the pass; the driver turns them into sample numbers
/// (train: data::SampleOrder(seed, epoch, N) at pass_first + position; evaluate: the position itself).
struct TaskOrder {
  std::uint64_t number = 0;  // of this task; results carry it, old ones are dropped
  PassKind kind = PassKind::train;
  std::uint64_t pass = 0, lease = 0;
  std::uint64_t version = 0, epoch = 0;
  std::uint64_t pass_first = 0;        // position in the epoch's order where the pass starts
  std::uint64_t first = 0, count = 0;  // positions of the pass
  std::uint64_t limit = 0;             // of them to start with; limit_task() may raise it up to count
  bool from_end = false;               // Task::from_end
  LossState state{};                   // what the loss gets
  std::uint64_t local_steps = 0;       // Grant::local_steps: answered like a gradient, with what these steps come to
  std::vector<StepRange> spans;        // then: its positions, in their order
  std::uint64_t overlapped = 0;        // likewise: Grant::ahead
  std::vector<SharedBytes> weights;    // by chunk, at `version`; empty: on its way, see weights_arrived()
};

/// What a contribution declares as its range is frozen.
struct Begun {
  double weight = 0, loss_sum = 0;
  std::uint64_t overlapped = 0;  // of local steps: made before the weights were used
};

}  // namespace motley::engine

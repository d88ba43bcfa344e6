#pragma once
// The rooms of a run, for those who work between them. One thread at a time.

#include <array>

#include "cluster/pause_machine.h"
#include "modes/exact/evaluation.h"
#include "modes/exact/exact_mode.h"
#include "modes/local/local_mode.h"
#include "modes/rounds/rounds_mode.h"
#include "modes/run.h"

namespace motley::cluster {

struct Rooms {
  Rooms(const modes::RunConfig& config, modes::PerformanceModel& performance, modes::Host& host)
      : run(config, performance),
        exact(run, host),
        local(run, host),
        rounds(run, host),
        evaluation(run, exact.work()) {}
  Rooms(const Rooms&) = delete;
  Rooms& operator=(const Rooms&) = delete;

  [[nodiscard]] std::array<modes::Mode*, 3> all_modes() noexcept { return {&exact, &local, &rounds}; }

  modes::Run run;
  modes::ExactMode exact;
  modes::LocalMode local;
  modes::RoundsMode rounds;
  modes::Evaluation evaluation;
  PauseMachine pause;
};

}  // namespace motley::cluster

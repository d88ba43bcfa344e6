#pragma once
// Runs a scenario to its end and says what was wrong. Same scenario, same trace hash. One thread.

#include <cstdint>
#include <string>
#include <vector>

#include "sim/checks.h"
#include "sim/scenario.h"
#include "sim/world.h"

namespace motley::sim {

struct SimulationOptions {
  Trace::Print print;  // what happens, line by line; may be empty
  Sabotage sabotage = Sabotage::none;
};

struct Report {
  std::vector<std::string> failures;
  std::uint64_t trace_hash = 0;
  double virtual_seconds = 0;
  std::uint64_t events = 0, frames = 0, duplicates = 0;
  std::uint32_t incarnations = 0;
  std::uint64_t steps_delegated = 0;  // made without asking
  std::uint64_t deltas = 0;           // frames of weights that are no use to who does not hold the version before
  std::uint64_t lies = 0;             // contributions that faults made wrong
  std::uint64_t sound_struck = 0;     // strikes of workers that nothing is wrong with
  bool liar_out = false;              // of the worker that lies in gradients: it was turned away,
  std::uint64_t liar_steps = 0;       // after so many steps that it had a share of since it began to
  std::uint64_t verified = 0;         // samples that were computed twice
  Measured measured;
  [[nodiscard]] bool ok() const noexcept { return failures.empty(); }
};

Report simulate(const Scenario& scenario, const SimulationOptions& options = {});

}  // namespace motley::sim

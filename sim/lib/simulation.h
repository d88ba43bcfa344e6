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
  std::uint64_t steps_lent = 0;  // made without asking
  std::uint64_t deltas = 0;      // frames of weights that are no use to who does not hold the version before
  std::uint64_t handed_on = 0;   // frames of weights from worker to worker
  std::uint64_t sums = 0;        // frames of gradients to the head with contributions of several workers
  std::uint64_t lies = 0;        // contributions that faults made wrong
  Measured measured;
  [[nodiscard]] bool ok() const noexcept { return failures.empty(); }
};

Report simulate(const Scenario& scenario, const SimulationOptions& options = {});

}  // namespace motley::sim

#pragma once
// What the nodes of one simulated run share.

#include <cstdint>

#include "sim/checks.h"
#include "sim/computer.h"
#include "sim/event_queue.h"
#include "sim/network.h"
#include "sim/scenario.h"
#include "sim/trace.h"

namespace motley::sim {

/// As often as the program's hosts look at the clock.
constexpr Duration kTick = std::chrono::milliseconds(50);

/// Something is damaged on purpose, to see that the checks notice.
enum class Sabotage : std::uint8_t {
  none,
  drop_range,      // a committed range is not reported
  double_range,    // one is reported twice
  scale_loss,      // the loss of a step is off by a thousandth
  spoil_gradient,  // a worker's gradient is, too
  negate_bias,     // the smallest tensor's gradients have another sign
  mix_versions,    // a task gets weights that no version has
  lose_step,       // a step is reported as the one after it
  hold_up,         // workers stop computing
  slow_step,       // a worker alone takes ten seconds for a task
};

struct World {
  World(const Scenario& s, Data d, const Reference& reference, Trace::Print print)
      : scenario(s),
        data(std::move(d)),
        trace(std::move(print)),
        network(queue, trace, s.network),
        checks(s, reference, data) {}

  const Scenario& scenario;
  Data data;
  EventQueue queue;
  Trace trace;
  Network network;
  Checks checks;
  Sabotage sabotage = Sabotage::none;
  std::uint64_t sound_struck = 0;  // strikes of workers that nothing is wrong with
  std::uint64_t verified = 0;      // samples that were computed twice
  Time healed_at{};                // until when something is broken, as far as is known

  void broken_until(Time time) { healed_at = std::max(healed_at, time); }
};

/// The engine's time-outs as in the program, with a shorter allowance for leases of unknown length.
engine::Timeouts timeouts();

}  // namespace motley::sim

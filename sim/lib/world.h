#pragma once
// What the nodes of one simulated run share.

#include "sim/checks.h"
#include "sim/computer.h"
#include "sim/event_queue.h"
#include "sim/network.h"
#include "sim/scenario.h"
#include "sim/trace.h"

namespace motley::sim {

/// Control messages and tasks can be damaged on purpose, to see that the checks notice.
enum class Sabotage : std::uint8_t { none, drop_range, double_range, scale_gradient, mix_versions, lose_step };

struct World {
  World(const Scenario& s, Data d, const Reference& reference, Trace::Print print)
      : scenario(s),
        data(std::move(d)),
        trace(std::move(print)),
        network(queue, trace, s.network),
        checks(s, reference) {}

  const Scenario& scenario;
  Data data;
  EventQueue queue;
  Trace trace;
  Network network;
  Checks checks;
  Sabotage sabotage = Sabotage::none;
  Time healed_at{};  // until when something is broken, as far as is known

  void broken_until(Time time) { healed_at = std::max(healed_at, time); }
};

/// The engine's time-outs as in the program, with a shorter allowance for leases of unknown length.
engine::Timeouts timeouts();

}  // namespace motley::sim

#pragma once
// What the modes of a run would do with what was measured, side by side, for people. Pure.

#include <cstdint>
#include <string>

#include "report/event.h"

namespace motley::runtime {

struct ModeOutlook {
  std::uint64_t local_steps = 0;  // of a round; 0: exact steps
  double samples_per_s = 0;
  double computing = 0;    // part of the time, in the mean over devices by their speed
  double bytes_a_day = 0;  // on the wire, both ways, all machines
};

/// `plan`: of a step, or of all samples of a round, which takes as long. `exchanged`: bytes of a step.
ModeOutlook outlook_of(const report::PlanMade& plan, std::uint64_t local_steps, double exchanged);

/// In one line. `text_model`: it predicts text, for which a price is published.
std::string line_of(const ModeOutlook& mode, bool text_model);

}  // namespace motley::runtime

#pragma once
// What the modes of a run would do with what was measured, side by side, for people; and which one is to be had. Pure.

#include <cstdint>
#include <optional>
#include <string>

#include "config/config.h"
#include "plan/round_price.h"
#include "report/event.h"
#include "runtime/head/measuring.h"

namespace motley::runtime {

struct ModeOutlook {
  std::uint64_t local_steps = 0;  // of a round; 0: exact steps
  std::size_t workers = 0;        // that have a share
  double samples_per_s = 0;
  double computing = 0;    // part of the time, in the mean over devices by their speed
  double bytes_a_day = 0;  // on the wire, both ways, all machines
};

/// `plan`: of a step, or of all samples of a round, which takes as long. `exchanged`: bytes of a step.
ModeOutlook outlook_of(const report::PlanMade& plan, std::uint64_t local_steps, double exchanged);

/// `step`: the plan of a step of all samples of a round. That of the round.
report::PlanMade round_of(report::PlanMade step, const RoundWire& wire);

/// In one line.
std::string line_of(const ModeOutlook& mode, const plan::RunOutline& run);

/// Samples a second of the devices of the head's machine, where other machines make at most `share` of a step one
/// version before: `bytes` each way for each step. Who cannot make and send a sample within two of their steps does not
/// help. 0: the head's machine has no device.
double helped_speed(const report::PlanMade& exact, double share, double bytes);
/// That in one line.
std::string helper_line(const report::PlanMade& exact, double share, double bytes);

/// `samples` of the training set.
plan::RunOutline outline_of(const config::RunConfig& config, std::uint64_t samples, std::uint64_t parameters);

/// The one that comes furthest in a second, less what its price takes; rounds only where they are possible, and their
/// price is published for a run of this kind.
report::ModeChosen choose_mode(const Measured& measured, const Measured::Batch& batch);

/// In a run of exact steps that are no faster than the fastest device alone: what rounds would gain. `round`: all of a
/// round's samples.
std::optional<report::AdviceGiven> advise_rounds(const report::PlanMade& exact, const report::PlanMade& round,
                                                 std::uint64_t local_steps, const plan::RunOutline& run);

}  // namespace motley::runtime

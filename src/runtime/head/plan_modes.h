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

/// `exchanged`: bytes of a step.
report::ModeOutlook exact_outlook(const report::PlanMade& exact, double exchanged);
/// `round`: of all samples of a round, which takes as long as a step of them.
report::ModeOutlook rounds_outlook(const report::PlanMade& round, std::uint64_t local_steps, double exchanged,
                                   const plan::RunOutline& run);

/// `step`: the plan of a step of all samples of a round. That of the round; with `overlap` half of its computing hides
/// the wire.
report::PlanMade round_of(report::PlanMade step, bool overlap);

/// In one line.
std::string line_of(const report::ModeOutlook& mode);

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

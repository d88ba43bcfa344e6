#pragma once
// What numbers on the wire cost this machine: measured beside the run, before its first step. Any thread.

#include <string>

#include "plan/codec_cost.h"

namespace motley::runtime {

/// In seconds by which computing ends later. `device`: what computes here, "cpu" with so many `threads` (0: all
/// processors) or an accelerator, which the wire keeps from nothing. Takes some 20 ms.
plan::EndCost measure_end_cost(bool encrypted, const std::string& device, unsigned threads);

}  // namespace motley::runtime

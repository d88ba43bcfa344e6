#pragma once
// What a plan means for the person who owns the machines. Pure.

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace motley::plan {

/// One worker in a plan.
struct Outlook {
  std::string name;
  std::uint64_t samples = 0;            // its share of a step; 0: left out
  double alone_samples_per_second = 0;  // its device by itself
  double compute_seconds = 0;           // of its share
  double exposed_seconds = 0;           // of a step, beyond computing: waiting for weights, sending gradients
  double least_step_seconds = 0;        // the shortest step in which it has a share
  std::string codec = "fp32";           // of its numbers on the wire, where that is open
  // What its link carries; empty: not known.
  std::optional<double> up_bytes_per_second{}, down_bytes_per_second{};
};

/// A step of all that have a share.
struct StepOutlook {
  double seconds = 0, samples_per_second = 0;
  double update_seconds = 0;  // of these, when the last contribution is there
  double link_seconds = 0;    // of these the coordinator's own link is busy with gradients; 0: not known
};

struct Advice {
  std::string recommendation;  // one sentence: whom to use, and what it gains
  std::string limit;           // what a step waits for
};

/// `evaluation_seconds`: of an evaluation by those who share, if one of the others does it beside the training.
/// REQUIRES workers not empty, step.seconds > 0.
Advice advise(const StepOutlook& step, std::span<const Outlook> workers, std::optional<double> evaluation_seconds = {});

}  // namespace motley::plan

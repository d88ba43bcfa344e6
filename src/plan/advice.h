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
};

struct Advice {
  std::string recommendation;  // one sentence: whom to use, and what it gains
  std::string limit;           // what a step waits for
};

/// `evaluation_seconds`: of an evaluation by those who share, if one of the others does it beside the training.
/// REQUIRES workers not empty, step_seconds > 0.
Advice advise(double step_seconds, double samples_per_second, std::span<const Outlook> workers,
              std::optional<double> evaluation_seconds = {});

}  // namespace motley::plan

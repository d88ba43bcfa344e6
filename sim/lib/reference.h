#pragma once
// One undisturbed machine: the same run as a plain loop, a whole batch at a time. What every simulated run must equal.

#include <cstdint>
#include <string>
#include <vector>

#include "motley/bytes.h"
#include "motley/layout.h"
#include "motley/result.h"
#include "sim/computer.h"
#include "sim/scenario.h"

namespace motley::sim {

struct Reference {
  struct Step {
    double weight = 0, loss_sum = 0;
  };
  std::vector<Step> steps;
  Layout layout;
  std::vector<SharedBytes> first, weights;  // of the first and of the last version, by chunk
};

Result<ps::Server> make_server(const RunSetup& run, const Layout& layout, const ps::Snapshot& snapshot);
/// The server a run starts from.
Result<ps::Server> first_server(const RunSetup& run, const softmax::SoftmaxRegression& model);
Result<Reference> make_reference(const RunSetup& run, const Data& data);

struct Distance {
  double relative = 0;  // ||a - b|| / ||b||
  bool same_bits = false;
};
Distance distance(const std::vector<SharedBytes>& a, const std::vector<SharedBytes>& b);

/// How a tensor moved from where it began, beside how it moved on one machine.
struct Course {
  std::string tensor;
  double cosine = 1;  // of the angle between the two
  double length = 1;  // in lengths of one machine's
};
/// Of each tensor that moved on one machine.
std::vector<Course> courses(const Reference& reference, const std::vector<SharedBytes>& weights);

}  // namespace motley::sim

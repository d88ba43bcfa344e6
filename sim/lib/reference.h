#pragma once
// One undisturbed machine: the same run as a plain loop, a whole batch at a time. What every simulated run must equal.

#include <cstdint>
#include <vector>

#include "motley/bytes.h"
#include "motley/result.h"
#include "sim/computer.h"
#include "sim/scenario.h"

namespace motley::sim {

struct Reference {
  struct Step {
    double weight = 0, loss_sum = 0;
  };
  std::vector<Step> steps;
  std::vector<SharedBytes> weights;  // of the last version, by chunk
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

}  // namespace motley::sim

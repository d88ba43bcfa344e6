#include "plan/noise_scale.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <vector>

#include "base/philox.h"

namespace motley::plan {
namespace {

// Any split of any number of samples, any dimensions, any noise: the mean of many estimates comes out where the
// Gaussians were put, within what its own spread allows.
RC_GTEST_PROP(NoiseEstimate, IsUnbiasedForGaussianGradients, ()) {
  constexpr int kSteps = 1500;
  const auto sizes =
      *rc::gen::resize(5, rc::gen::suchThat(rc::gen::container<std::vector<int>>(rc::gen::inRange(1, 65)),
                                            [](const std::vector<int>& all) { return all.size() >= 2; }));
  const auto dimensions = *rc::gen::inRange(1, 12);
  const double spread = *rc::gen::inRange(1, 30) * 0.1;
  const double mean = *rc::gen::inRange(0, 20) * 0.1;
  Philox random(*rc::gen::arbitrary<std::uint64_t>());
  double samples = 0;
  for (const int size : sizes) samples += size;
  double sums[2]{};
  double squares[2]{};
  for (int i = 0; i < kSteps; ++i) {
    std::vector<PartNorm> parts;
    for (const int size : sizes) parts.push_back({.weight = static_cast<double>(size)});
    double mean_square = 0;
    for (int d = 0; d < dimensions; ++d) {
      double total = 0;
      for (PartNorm& part : parts) {
        const double sum = part.weight * mean + std::sqrt(part.weight) * spread * random.gaussian();
        part.square += sum * sum;
        total += sum;
      }
      mean_square += std::pow(total / samples, 2);
    }
    const NoiseEstimate estimate = *noise_estimate(parts, mean_square, samples);
    const double values[]{estimate.variance, estimate.signal};
    for (int k = 0; k < 2; ++k) {
      sums[k] += values[k] / kSteps;
      squares[k] += values[k] * values[k] / kSteps;
    }
  }
  const double expected[]{dimensions * spread * spread, dimensions * mean * mean};
  for (int k = 0; k < 2; ++k) {
    const double error = std::sqrt((squares[k] - sums[k] * sums[k]) / kSteps);
    RC_ASSERT(std::abs(sums[k] - expected[k]) <= 6 * error + 1e-9);
  }
}

}  // namespace
}  // namespace motley::plan

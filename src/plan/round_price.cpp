#include "plan/round_price.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace motley::plan {
namespace {

// Percent of loss above training with a gradient a step, 30 steps a round, equal tokens, both sides tuned: table 4 of
// arXiv:2503.09799. By 1, 2, 4 and 8 workers.
struct Published {
  double parameters;
  std::array<double, 4> percent;
};
constexpr std::array<Published, 6> kPublished{{{35e6, {-0.1, 0.7, 2.0, 3.9}},
                                               {90e6, {-0.1, 0.5, 1.5, 3.1}},
                                               {180e6, {-0.2, 0.3, 1.1, 2.3}},
                                               {335e6, {-0.3, 0.1, 0.9, 2.0}},
                                               {1.3e9, {-0.4, 0.2, 0.5, 1.3}},
                                               {2.4e9, {-0.4, -0.1, 0.3, 1.1}}}};
constexpr std::size_t kWorkersMax = 8;
constexpr std::uint64_t kParametersMin = 10'000'000;
constexpr std::uint64_t kStepsOfPublished = 30, kStepsMin = 10, kStepsMax = 300;
// An estimate of the shortest published run: 20 tokens a parameter are 700 million, in batches of 131,072 tokens 5,300
// steps. With 38 rounds a model of 1.8 million parameters ended 12 % above with two workers and 22 % with four.
constexpr std::uint64_t kRoundsMin = 150;
constexpr double kPerDecade = 0.35;          // more for ten times as many steps a round
constexpr double kSamplesPerPercent = 0.13;  // more that make up for a percent of loss

// Along the line between doublings of the number of workers.
double by_workers(const std::array<double, 4>& percent, std::size_t workers) {
  const double at = std::log2(static_cast<double>(workers));
  const auto below = std::min<std::size_t>(static_cast<std::size_t>(at), percent.size() - 2);
  return percent[below] + (at - static_cast<double>(below)) * (percent[below + 1] - percent[below]);
}

std::string count(std::uint64_t number) { return std::to_string(number); }

}  // namespace

std::optional<RoundPrice> round_price(std::uint64_t parameters, std::size_t workers, std::uint64_t local_steps) {
  if (parameters < kParametersMin || workers == 0 || workers > kWorkersMax) return std::nullopt;
  if (local_steps < kStepsMin || local_steps > kStepsMax) return std::nullopt;
  const auto size = std::min(static_cast<double>(parameters), kPublished.back().parameters);
  std::size_t above = 1;
  while (above + 1 < kPublished.size() && kPublished[above].parameters < size) ++above;
  const Published &small = kPublished[above - 1], &large = kPublished[above];
  const double part = std::log(size / small.parameters) / std::log(large.parameters / small.parameters);
  const double from = by_workers(small.percent, workers), to = by_workers(large.percent, workers);
  double percent = from + part * (to - from);
  if (percent > 0)
    percent *= 1 + kPerDecade * std::log10(static_cast<double>(local_steps) / static_cast<double>(kStepsOfPublished));
  return RoundPrice{percent, size < kPublished.front().parameters};
}

std::string against_rounds(const RunOutline& run, std::size_t workers, std::uint64_t local_steps) {
  if (!run.text) return "what they cost in quality is not tested for this kind of model";
  if (run.parameters < kParametersMin)
    return "what they cost in quality is not known below 10 million parameters, and this model has " +
           count(run.parameters);
  if (workers > kWorkersMax) return "what they cost in quality is not known for more than 8 workers";
  if (local_steps < kStepsMin || local_steps > kStepsMax)
    return "what they cost in quality is known for 10 to 300 steps a round, not for " + count(local_steps);
  if (run.steps / local_steps < kRoundsMin)
    return "what they cost in quality is known for " + count(kRoundsMin) + " rounds and more, and this run has " +
           count(run.steps / local_steps);
  return {};
}

double worth(double samples_per_second, double percent) noexcept {
  return samples_per_second / std::max(1 + kSamplesPerPercent * percent, 0.1);
}

}  // namespace motley::plan

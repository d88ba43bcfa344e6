#include "engine/head/evaluations.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/assert.h"

namespace motley::engine {
namespace {

// Of a sum or a count. Devices that convolve in TF32 differ by some thousandths.
constexpr double kApart = 0.01;
constexpr double kLossLeast = 1e-4;  // of an item: float32 sums near zero have no hundredths

bool apart(double one, double other, double least) {
  if (!std::isfinite(one) || !std::isfinite(other)) return std::isfinite(one) != std::isfinite(other);
  return !(std::abs(one - other) <= std::max(least, kApart * std::max(std::abs(one), std::abs(other))));
}

std::string text(const Evaluated& of) {
  char text[96];
  std::snprintf(text, sizeof text, "%.6g and %llu", of.weight > 0 ? of.loss_sum / of.weight : of.loss_sum,
                static_cast<unsigned long long>(of.correct));
  return text;
}

}  // namespace

Evaluated Evaluations::close(const cluster::CoordinatorMachine& machine, bool exact) {
  const auto& pass = *machine.pass();
  const modes::Coverage& coverage = machine.coverage();
  Evaluated result{.version = machine.version(), .epoch = pass.range.epoch, .samples = pass.range.count};
  result.exact = exact;
  for (const auto& piece : coverage.pieces(0)) {
    const modes::Contribution* part = coverage.find(piece.lease);
    MOTLEY_ASSERT(part != nullptr);
    result.correct += part->correct;
    result.weight += part->weight;
    result.loss_sum += part->loss_sum;
    const std::vector<double>& more = scores_[piece.lease];
    result.scores.resize(std::max(result.scores.size(), more.size()));
    for (std::size_t i = 0; i < more.size(); ++i) result.scores[i] += more[i];
  }
  scores_.clear();
  // Others may follow while a slow worker is at an earlier one.
  if (result.version == background_version_) everybodys_ = result;
  return result;
}

std::optional<Evaluated> Evaluations::background(const modes::BackgroundEvaluation& background,
                                                 const wire::Finish& finish, std::uint64_t samples) const {
  // Where losses are not finite the newest version will not be better; a pass of everybody says so.
  const bool whole = finish.count == samples && std::isfinite(finish.weight) && finish.weight >= 0 &&
                     static_cast<double>(finish.correct) <= finish.weight;
  if (!whole) return std::nullopt;
  return Evaluated{.version = background.version,
                   .epoch = background.epoch,
                   .samples = finish.count,
                   .correct = finish.correct,
                   .weight = finish.weight,
                   .loss_sum = finish.loss_sum,
                   .exact = background_exact_,
                   .scores = finish.scores};
}

std::string Evaluations::difference() const {
  MOTLEY_ASSERT(background_.version == everybodys_.version);
  // One answer in a hundred may fall on the other side of a decision by rounding, of few samples one.
  const double few = 1 + kApart * everybodys_.weight;
  bool differs = apart(background_.weight, everybodys_.weight, 0) ||
                 apart(background_.loss_sum, everybodys_.loss_sum, kLossLeast * everybodys_.weight) ||
                 apart(static_cast<double>(background_.correct), static_cast<double>(everybodys_.correct), few) ||
                 background_.scores.size() != everybodys_.scores.size();
  for (std::size_t i = 0; !differs && i < background_.scores.size(); ++i)
    differs = apart(background_.scores[i], everybodys_.scores[i], few);
  if (!differs) return {};
  return "a loss of " + text(background_) + " right answers, where all others come to " + text(everybodys_);
}

}  // namespace motley::engine

#include "engine/coordinator_evaluations.h"

#include <algorithm>
#include <cmath>

#include "base/assert.h"

namespace motley::engine {

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
  return result;
}

std::optional<Evaluated> Evaluations::aside(const modes::Aside& aside, const wire::Finish& finish,
                                            std::uint64_t samples) const {
  // Where losses are not finite the newest version will not be better; a pass of everybody says so.
  const bool whole = finish.count == samples && std::isfinite(finish.weight) && finish.weight >= 0 &&
                     static_cast<double>(finish.correct) <= finish.weight;
  if (!whole) return std::nullopt;
  return Evaluated{.version = aside.version,
                   .epoch = aside.epoch,
                   .samples = finish.count,
                   .correct = finish.correct,
                   .weight = finish.weight,
                   .loss_sum = finish.loss_sum,
                   .exact = aside_exact_,
                   .scores = finish.scores};
}

}  // namespace motley::engine

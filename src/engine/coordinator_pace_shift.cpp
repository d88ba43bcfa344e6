// Which work should move between leases under way.

#include <algorithm>

#include "base/assert.h"
#include "engine/coordinator_pace.h"

namespace motley::engine {
namespace {

// Of the pass: below it the models know too little to say who is late.
constexpr double kWorthMoving = 0.03;
// A helper sends a whole gradient more, over a link that others may need.
constexpr double kWorthHelping = 0.2;
constexpr double kWorthHelpingSeconds = 0.05;

}  // namespace

void MeasuredPace::uses_micro_batch(cluster::WorkerId worker, std::uint64_t samples) {
  if (samples > 0) known(PassKind::train, worker).micro_batch = samples;
}

std::uint64_t MeasuredPace::unit(cluster::WorkerId worker) const {
  if (!fixed_.empty() || worker > train_.known.size() || !train_.known[worker - 1].time()) return 0;
  const std::uint64_t samples = std::min(train_.known[worker - 1].micro_batch, batch_);
  return (samples + grain_ - 1) / grain_ * grain_;
}

std::optional<plan::Part> MeasuredPace::part_of(const Part& part) const {
  if (unit(part.worker) == 0) return std::nullopt;
  const Known& about = train_.known[part.worker - 1];
  return plan::Part{.time = *about.time(),
                    .micro_batch = about.micro_batch,
                    .limit = part.limit,
                    .ceiling = part.ceiling,
                    .first = {part.first_samples, seconds(part.first_after)},
                    .newest = {part.samples, part.samples == 0 ? 0 : seconds(part.newest_after)},
                    .age = seconds(part.after)};
}

std::uint64_t MeasuredPace::shift(const Part& late, const Part& early) const {
  if (early.samples >= early.limit) return 0;  // its Begin is on the way
  const std::optional<plan::Part> from = part_of(late);
  const std::optional<plan::Part> to = part_of(early);
  if (!from || !to) return 0;
  const plan::Shift shift = plan::best_shift(*from, *to, unit(early.worker));
  return shift.before - shift.after > kWorthMoving * (from->age + shift.before) ? shift.samples : 0;
}

std::uint64_t MeasuredPace::relief(const Part& late, cluster::WorkerId helper, Duration pass_age) const {
  const std::optional<plan::Part> from = part_of(late);
  const std::optional<plan::Part> to = part_of({.worker = helper, .ceiling = late.limit});
  if (!from || !to) return 0;
  const plan::Shift shift = plan::best_shift(*from, *to, unit(late.worker));
  const double least = std::max(kWorthHelpingSeconds, kWorthHelping * (seconds(pass_age) + shift.before));
  return shift.before - shift.after > least ? shift.samples : 0;
}

}  // namespace motley::engine

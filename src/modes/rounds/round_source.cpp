#include "modes/rounds/round_source.h"

#include <algorithm>

namespace motley::modes {

// Nothing comes after the last round.
OpenPass RoundSource::round(std::uint64_t version) {
  const StepRange fresh = run_.batches.range(version);
  RoundSpans spans = version + 1 < run_.steps() ? take_first(owed_, fresh.count) : std::exchange(owed_, {});
  spans.push_back({version, 0, fresh.count});
  const std::uint64_t total = positions(spans);
  const std::uint64_t batch = run_.config.local_batch;
  return {.id = {.kind = PassKind::train, .number = version},
          .range = {fresh.epoch, fresh.order_first, total},
          .spans = std::move(spans),
          .local_steps = std::max<std::uint64_t>(1, (fresh.count + batch - 1) / batch)};
}

}  // namespace motley::modes

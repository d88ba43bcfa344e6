#include "engine/local/soloist.h"

#include <utility>

namespace motley::engine {

Soloist::Soloist(DelegatedSteps order) : LocalTrainer(order.server), order_(std::move(order)), since_(order_.opened) {
  begin_steps();
}

Result<DelegatedStep> Soloist::finish(double compute_seconds, Time now) {
  DelegatedStep step{.number = order_.number,
                     .step = version(),
                     .samples = samples(),
                     .learning_rate = server_->learning_rate(0),
                     .compute_seconds = compute_seconds,
                     .duration = now - since_,
                     .after = {}};
  if (const Status updated = update(); !updated) return updated.error();
  step.weight = step_weight_;
  step.loss_sum = step_loss_;
  step.gradient_norm = step_norm_;
  if (!resident()) step.after = server_->snapshot();
  ++made_;
  since_ = now;
  return step;
}

}  // namespace motley::engine

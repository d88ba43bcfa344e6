#include "plan/worker_link.h"

namespace motley::plan {

std::optional<Sender> WorkerLink::sent(std::uint64_t lease, const Transfer& gradient, double end) noexcept {
  if (lease <= lease_ || !LinkModel::tells(gradient)) return std::nullopt;
  lease_ = lease;
  const auto bytes = static_cast<double>(gradient.bytes);
  const double before = up_.bytes_per_second().value_or(bytes / gradient.seconds);
  up_.record(gradient);
  return Sender{.begin = end - gradient.seconds, .end = end, .bytes = bytes, .before = before};
}

double WorkerLink::closed(double compute_seconds, double exposed_seconds, const ByCodec& processors) noexcept {
  if (!open_ || !remote_) return 1;
  const double factor = choice_.residual(residual_);
  return factor == 1 ? choice_.pass(compute_seconds, exposed_seconds, processors) : factor;
}

}  // namespace motley::plan

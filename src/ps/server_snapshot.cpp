#include <utility>

#include "base/assert.h"
#include "ps/server_impl.h"

namespace motley::ps {

Snapshot Server::snapshot() const {
  MOTLEY_ASSERT(impl_->updates_on_device == 0);
  Snapshot result = handles();
  if (impl_->optimizer.kind == OptimizerKind::outside) result.optimizer = impl_->optimizer.outside->state();
  return result;
}

Snapshot Server::handles() const {
  Snapshot result;
  result.version = impl_->version;
  result.norm_before = impl_->norm_before;
  impl_->chunks.add_handles(result);
  if (impl_->updates_on_device > 0) result.optimizer.clear();
  return result;
}

Server Server::fork() const {
  MOTLEY_ASSERT(!outside());
  Result<Server> made =
      make(impl_->chunks.layout(), impl_->optimizer, impl_->rates.schedule(), impl_->clip_norm, snapshot());
  MOTLEY_ASSERT(made.ok());
  made->impl_->rates = impl_->rates;
  made->impl_->updates = impl_->updates;
  made->impl_->clip_by_before = impl_->clip_by_before;
  made->impl_->stretches = impl_->stretches;
  made->impl_->pool = impl_->pool;  // what one gives back the other takes, so that both do not keep idle buffers
  made->impl_->open_step();
  return std::move(*made);
}

Status Server::rebase(std::uint64_t version, std::vector<SharedBytes> weights, bool anew) {
  MOTLEY_ASSERT(impl_->chunks.all(Phase::waiting));
  if (Status taken = impl_->chunks.take_weights({.version = version, .weights = std::move(weights), .optimizer = {}});
      !taken) {
    return taken;
  }
  impl_->updates -= std::exchange(impl_->updates_on_device, 0);  // that were not brought are lost
  if (anew) {
    impl_->chunks.begin_states(impl_->pool);
    impl_->updates = 0;
  }
  impl_->version = version;
  impl_->open_step();
  return {};
}

void Server::adopt(const Snapshot& of_fork) {
  MOTLEY_ASSERT(impl_->chunks.all(Phase::waiting));
  impl_->updates += of_fork.version - impl_->version;
  impl_->updates_on_device = 0;
  const Status taken = impl_->take(of_fork);
  MOTLEY_ASSERT(taken.ok());
  impl_->open_step();
}

}  // namespace motley::ps

#include "runtime/worker/arrivals.h"

#include <utility>

namespace motley::runtime {

bool Arrivals::are_here(std::size_t first, std::size_t count) {
  bool all = true;
  for (std::size_t block = first; block < first + count; ++block) {
    if (blocks_[block].load(std::memory_order_acquire) == kHere) continue;
    all = false;
    std::uint8_t missing = kMissing;
    if (!blocks_[block].compare_exchange_strong(missing, kWanted)) continue;
    const std::lock_guard lock(mutex_);
    wishes_.push_back(block);
  }
  return all;
}

Status Arrivals::wait(std::size_t first, std::size_t count) {
  if (are_here(first, count)) return {};
  std::unique_lock lock(mutex_);
  for (std::size_t block = first; block < first + count; ++block) {
    came_.wait(lock, [&] { return failure_ || blocks_[block].load() == kHere; });
    if (blocks_[block].load() != kHere) return *failure_;
  }
  return {};
}

void Arrivals::set_here(std::size_t block) {
  {
    const std::lock_guard lock(mutex_);
    blocks_[block].store(kHere, std::memory_order_release);
  }
  came_.notify_all();
}

void Arrivals::fail(Error why) {
  {
    const std::lock_guard lock(mutex_);
    failure_ = std::move(why);
  }
  came_.notify_all();
}

std::vector<std::size_t> Arrivals::wishes() {
  const std::lock_guard lock(mutex_);
  return std::exchange(wishes_, {});
}

}  // namespace motley::runtime

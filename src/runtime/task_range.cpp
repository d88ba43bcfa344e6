#include "runtime/task_range.h"

#include <algorithm>

namespace motley::runtime {

void TaskRange::reset(std::uint64_t limit) {
  const std::lock_guard lock(mutex_);
  limit_ = limit;
  claimed_ = 0;
  frozen_ = enough_ = false;
}

std::uint64_t TaskRange::limit() const noexcept {
  const std::lock_guard lock(mutex_);
  return limit_;
}

std::uint64_t TaskRange::set_limit(std::uint64_t limit) noexcept {
  const std::lock_guard lock(mutex_);
  if (limit == 0) return limit_ = 0;
  if (limit_ > 0 && !frozen_) limit_ = std::max(enough_ ? std::min(limit, limit_) : limit, claimed_);
  return limit_;
}

void TaskRange::finish_early() noexcept {
  const std::lock_guard lock(mutex_);
  enough_ = true;
  if (!frozen_) limit_ = claimed_;
}

bool TaskRange::claim(std::uint64_t count) const noexcept {
  const std::lock_guard lock(mutex_);
  if (count > limit_) return false;
  claimed_ = std::max(claimed_, count);
  return true;
}

void TaskRange::freeze(std::uint64_t count) noexcept {
  const std::lock_guard lock(mutex_);
  frozen_ = true;
  if (limit_ > 0) limit_ = count;
}

bool TaskRange::frozen() const noexcept {
  const std::lock_guard lock(mutex_);
  return frozen_;
}

}  // namespace motley::runtime

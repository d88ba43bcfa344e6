#include "compute/task_range.h"

#include <algorithm>

namespace motley::compute {

void TaskRange::reset(std::uint64_t limit) noexcept {
  *this = {};
  limit_ = limit;
}

std::uint64_t TaskRange::set_limit(std::uint64_t limit) noexcept {
  if (limit == 0) return limit_ = 0;
  if (limit_ > 0 && !frozen_) limit_ = std::max(enough_ ? std::min(limit, limit_) : limit, claimed_);
  return limit_;
}

void TaskRange::finish_early() noexcept {
  enough_ = true;
  if (!frozen_) limit_ = std::min(limit_, claimed_);
}

bool TaskRange::claim(std::uint64_t count) noexcept {
  if (count > limit_) return false;
  claimed_ = std::max(claimed_, count);
  return true;
}

void TaskRange::freeze(std::uint64_t count) noexcept {
  frozen_ = true;
  if (limit_ > 0) limit_ = count;
}

}  // namespace motley::compute

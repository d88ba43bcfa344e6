#include "runtime/persist/redo_budget.h"

#include <algorithm>

#include "base/assert.h"
#include "machine/spare_memory.h"

namespace motley::runtime {

void RedoBudget::begin() {
  const std::lock_guard lock(mutex_);
  logging_ = true;
}

void RedoBudget::pause() {
  const std::lock_guard lock(mutex_);
  logging_ = false;
}

bool RedoBudget::take(std::size_t bytes, Time now) {
  const std::lock_guard lock(mutex_);
  if (!logging_) return false;
  const double fresh = seconds(now - counted_) * kBytesPerSecondMax;
  allowance_bytes_ = std::min(kBurstBytesMax, allowance_bytes_ + fresh);
  counted_ = now;
  const bool much = waiting_bytes_ + bytes > kWaitingBytesMax || static_cast<double>(bytes) > allowance_bytes_;
  logging_ = !much && (waiting_bytes_ == 0 || machine::check_memory_for(bytes, "a gradient", "").ok());
  if (!logging_) return false;
  allowance_bytes_ -= static_cast<double>(bytes);
  return true;
}

void RedoBudget::queued(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  waiting_bytes_ += bytes;
}

void RedoBudget::written(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  MOTLEY_ASSERT(bytes <= waiting_bytes_);
  waiting_bytes_ -= bytes;
}

}  // namespace motley::runtime

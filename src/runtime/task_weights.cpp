#include "runtime/task_weights.h"

#include <utility>

#include "runtime/mailbox.h"

namespace motley::runtime {

void TaskWeights::reset(std::vector<SharedBytes> chunks) {
  const std::lock_guard lock(mutex_);
  chunks_ = std::move(chunks);
  abandoned_ = false;
  waited_ = {};
}

void TaskWeights::arrived(ChunkId chunk, SharedBytes weights) {
  {
    const std::lock_guard lock(mutex_);
    // A span of what was there may be in use.
    if (chunk < chunks_.size() && chunks_[chunk].empty()) chunks_[chunk] = std::move(weights);
  }
  changed_.notify_one();
}

void TaskWeights::abandon() {
  {
    const std::lock_guard lock(mutex_);
    abandoned_ = true;
  }
  changed_.notify_one();
}

std::span<const float> TaskWeights::get(ChunkId chunk) {
  std::unique_lock lock(mutex_);
  const auto over = [&] { return abandoned_ || !chunks_.at(chunk).empty(); };
  if (!over()) {
    const Time began = now();
    duty_.stop(began);
    changed_.wait(lock, over);
    const Time ended = now();
    duty_.start(ended);
    waited_ += ended - began;
  }
  return abandoned_ ? std::span<const float>() : chunks_[chunk].floats();
}

bool TaskWeights::here(ChunkId chunk) const {
  const std::lock_guard lock(mutex_);
  return abandoned_ || !chunks_.at(chunk).empty();
}

std::size_t TaskWeights::chunks() const {
  const std::lock_guard lock(mutex_);
  return chunks_.size();
}

}  // namespace motley::runtime

#pragma once
// Which samples this machine has so far, for all workers of a run, and where the run is. Thread-safe.

#include <cstdint>
#include <mutex>
#include <optional>

#include "base/batch_plan.h"
#include "wire/messages.h"

namespace motley::runtime {

class SampleStock {
 public:
  struct Told {
    std::uint64_t number = 0;  // of what was told; 0: nothing yet
    wire::Stock stock{};
  };
  struct Place {
    std::uint64_t seed = 0;
    bool shuffles = false;
    StepRange newest{};  // train pass
  };

  void tell(const wire::Stock& stock) {
    const std::lock_guard lock(mutex_);
    ++told_.number;
    told_.stock = stock;
  }
  [[nodiscard]] Told told() const {
    const std::lock_guard lock(mutex_);
    return told_;
  }
  /// Of the run that this machine takes part in.
  void begin(std::uint64_t seed, bool shuffles) {
    const std::lock_guard lock(mutex_);
    place_ = {.seed = seed, .shuffles = shuffles};
  }
  void opened(const StepRange& pass) {
    const std::lock_guard lock(mutex_);
    if (place_) place_->newest = pass;
  }
  /// Nothing: it takes part in none yet.
  [[nodiscard]] std::optional<Place> place() const {
    const std::lock_guard lock(mutex_);
    return place_;
  }

 private:
  mutable std::mutex mutex_;
  Told told_;
  std::optional<Place> place_;
};

}  // namespace motley::runtime

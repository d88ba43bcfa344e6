#pragma once
// Whether the redo log will take the gradient of a step: decided before the step, since one that it does not want need
// not be kept. A disk that cannot keep up costs the redo log, not the training. Thread-safe.

#include <cstddef>
#include <mutex>

#include "base/time.h"

namespace motley::runtime {

class RedoBudget {
 public:
  /// What may be written at once. The log is meant for runs that write less than 50 MB/s; above it the steps since the
  /// last checkpoint are done again.
  static constexpr double kBurstBytesMax = 500e6;
  static constexpr double kBytesPerSecondMax = 50e6;
  static constexpr std::size_t kWaitingBytesMax = std::size_t{256} << 20;

  /// A checkpoint is on its way, and a new log begins behind it.
  void begin();
  /// A step is missing in the log: later ones are of no use to it.
  void pause();
  /// The gradient of the next step, of so many bytes, is to be kept and written. After false the log pauses.
  [[nodiscard]] bool take(std::size_t bytes, Time now);
  /// What waits for the disk.
  void queued(std::size_t bytes);
  void written(std::size_t bytes);

 private:
  std::mutex mutex_;
  bool logging_ = false;
  std::size_t waiting_bytes_ = 0;
  double allowance_bytes_ = kBurstBytesMax;
  Time counted_{};  // the allowance is as of then
};

}  // namespace motley::runtime

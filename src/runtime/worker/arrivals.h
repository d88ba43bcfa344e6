#pragma once
// Which blocks of a set are here, and which somebody waits for: between who fetches them and who reads meanwhile.
// Thread-safe.

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "motley/result.h"

namespace motley::runtime {

class Arrivals {
 public:
  /// By the number of a block in the set.
  explicit Arrivals(std::size_t blocks) : blocks_(blocks) {}

  /// Whether all of these are here; what is not is wished for.
  [[nodiscard]] bool are_here(std::size_t first, std::size_t count);
  /// Until all of these are. Errors: of fail().
  Status wait(std::size_t first, std::size_t count);

  void set_here(std::size_t block);
  /// No more will come.
  void fail(Error why);
  /// What was wished for since this was called last, and is not here.
  [[nodiscard]] std::vector<std::size_t> wishes();

 private:
  enum State : std::uint8_t { kMissing, kWanted, kHere };

  std::vector<std::atomic<std::uint8_t>> blocks_;
  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<std::size_t> wishes_;
  std::optional<Error> failure_;
};

}  // namespace motley::runtime

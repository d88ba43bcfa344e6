#pragma once
// What happened, as a hash (equal hashes: equal runs) and, if asked, as lines with virtual times. One thread.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/time.h"

namespace motley::sim {

class Trace {
 public:
  using Print = std::function<void(const std::string& line)>;
  explicit Trace(Print print = {}) : print_(std::move(print)) {}

  [[nodiscard]] bool printing() const noexcept { return static_cast<bool>(print_); }
  [[nodiscard]] std::uint64_t hash() const noexcept { return hash_; }

  /// `what` happened to `who`. Numbers and text both enter the hash.
  void note(Time now, std::string_view who, std::string_view what, std::uint64_t a = 0, std::uint64_t b = 0);

 private:
  void mix(std::uint64_t value) noexcept;
  Print print_;
  std::uint64_t hash_ = 0xCBF29CE484222325U;
};

}  // namespace motley::sim

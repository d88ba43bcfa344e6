#pragma once
// The epoch fence: incarnation:32 | session:32. The incarnation rises whenever the coordinator restarts, the session
// (its number, never used again) whenever a worker connects, so a frame of an earlier life is told apart by one
// comparison.

#include <cstdint>

namespace motley::cluster {

struct Fence {
  std::uint32_t incarnation = 0;
  std::uint32_t session = 0;
  bool operator==(const Fence&) const = default;

  [[nodiscard]] constexpr std::uint64_t pack() const noexcept { return std::uint64_t{incarnation} << 32 | session; }
  [[nodiscard]] static constexpr Fence unpack(std::uint64_t fence) noexcept {
    return {.incarnation = static_cast<std::uint32_t>(fence >> 32), .session = static_cast<std::uint32_t>(fence)};
  }
};

}  // namespace motley::cluster

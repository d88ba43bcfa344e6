#pragma once
// What a run is told of second looks (modes/exact/verification.h).

#include <cstdint>

namespace motley::modes {

/// Shares that are computed twice, by two workers, and compared.
struct Verify {
  static constexpr std::uint64_t kWithReasonAfter = 16;  // passes, where there is a reason to look; at most `after`

  double part = 0;           // of the time
  std::uint64_t secret = 0;  // which shares follows from it
  bool alike = false;        // only while all who may look draw the same random numbers
  bool probes = false;       // each worker's device is compared with another before it counts
  std::uint64_t after =
      64;  // passes of this process: the speeds become known in them, and a second look makes one longer
};

}  // namespace motley::modes

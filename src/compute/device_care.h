#pragma once
// What follows from a fault of a device: the range is computed again, in smaller passes where it took too long; the
// third time it computes no more. Pure.

#include <cstdint>
#include <string>
#include <string_view>

#include "motley/device_model.h"

namespace motley::compute {

/// Whether Care is wanted of a device of this name. Who is told no more than that goes by it.
[[nodiscard]] constexpr bool needs_care(std::string_view device) noexcept { return device.starts_with("mps"); }

class DeviceCare {
 public:
  static constexpr std::uint32_t kFaultsMax = 3;
  /// Tasks without a fault that make up for one.
  static constexpr std::uint64_t kMakesUp = 10'000;

  enum class Act : std::uint8_t { again, again_in_smaller_passes, out };
  /// `smaller`: passes can be.
  [[nodiscard]] Act decide(const Fault& fault, bool smaller) noexcept;
  void went_well() noexcept;
  /// Whether passes are too long: what one took, three times in a row.
  [[nodiscard]] bool too_slow(double seconds, double limit) noexcept;

 private:
  std::uint32_t faults_ = 0;
  std::uint64_t well_ = 0;
  std::uint32_t slow_ = 0;
};

/// What people are told of a device that is out.
[[nodiscard]] std::string sentence_of(const Fault& fault, const std::string& device);

}  // namespace motley::compute

#include "compute/device_care.h"

#include "base/fault_words.h"

namespace motley::compute {
namespace {

constexpr std::uint32_t kSlowInARow = 3;  // one may be a hiccup

}  // namespace

DeviceCare::Act DeviceCare::decide(const Fault& fault, bool smaller) noexcept {
  well_ = 0;
  if (fault.kind == Fault::Kind::too_long && smaller) return Act::again_in_smaller_passes;
  return ++faults_ >= kFaultsMax ? Act::out : Act::again;
}

void DeviceCare::went_well() noexcept {
  if (faults_ == 0 || ++well_ < kMakesUp) return;
  well_ = 0;
  --faults_;
}

bool DeviceCare::too_slow(double seconds, double limit) noexcept {
  slow_ = seconds < limit ? 0 : slow_ + 1;
  if (slow_ < kSlowInARow) return false;
  slow_ = 0;
  return true;
}

std::string sentence_of(const Fault& fault, const std::string& device) {
  if (fault.kind == Fault::Kind::stale) return device + " did not compute what it was asked for: " + fault.what;
  const bool too_long = fault.kind == Fault::Kind::too_long;
  return std::string(kGaveUp) + device + (too_long ? ", which took too long: " : ": ") + fault.what;
}

}  // namespace motley::compute

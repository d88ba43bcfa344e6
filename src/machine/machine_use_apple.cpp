#ifdef __APPLE__

#include <CoreFoundation/CoreFoundation.h>
#include <IOKit/IOKitLib.h>
#include <IOKit/ps/IOPSKeys.h>
#include <IOKit/ps/IOPowerSources.h>

#include <cstdint>

#include "machine/machine_use.h"

namespace motley::machine {
namespace {

std::optional<double> input_idle() {
  const io_service_t hid = IOServiceGetMatchingService(MACH_PORT_NULL, IOServiceMatching("IOHIDSystem"));
  if (hid == IO_OBJECT_NULL) return std::nullopt;
  const CFTypeRef value = IORegistryEntryCreateCFProperty(hid, CFSTR("HIDIdleTime"), kCFAllocatorDefault, 0);
  IOObjectRelease(hid);
  if (value == nullptr) return std::nullopt;
  std::int64_t nanoseconds = 0;
  const bool known = CFGetTypeID(value) == CFNumberGetTypeID() &&
                     CFNumberGetValue(static_cast<CFNumberRef>(value), kCFNumberSInt64Type, &nanoseconds);
  CFRelease(value);
  if (!known) return std::nullopt;
  return static_cast<double>(nanoseconds) * 1e-9;
}

std::optional<bool> on_battery() {
  const CFTypeRef sources = IOPSCopyPowerSourcesInfo();
  if (sources == nullptr) return std::nullopt;
  const CFStringRef from = IOPSGetProvidingPowerSourceType(sources);  // not ours to release
  std::optional<bool> answer;
  if (from != nullptr) answer = CFStringCompare(from, CFSTR(kIOPSBatteryPowerValue), 0) == kCFCompareEqualTo;
  CFRelease(sources);
  return answer;
}

class AppleMachineUse final : public MachineUse {
 public:
  UseReading read() override { return {input_idle(), std::nullopt, on_battery()}; }
};

}  // namespace

std::unique_ptr<MachineUse> make_machine_use() { return std::make_unique<AppleMachineUse>(); }

}  // namespace motley::machine

#endif

#ifdef __APPLE__

#include <dlfcn.h>

#include <cstdint>

#include "machine/machine_use.h"

namespace motley::machine {
namespace {

// The frameworks are opened when they are asked for: their headers come with Apple's tools alone, and a program that
// cannot ask is one that does not know, and works. What follows is theirs, in IOKitLib.h, IOPowerSources.h and
// CoreFoundation's headers.
using Object = const void*;                          // CFTypeRef and what is one
using Port = std::uint32_t;                          // mach_port_t, io_service_t
using Index = long;                                  // CFIndex
constexpr Port kNoPort = 0;                          // MACH_PORT_NULL, IO_OBJECT_NULL
constexpr Index kSigned64 = 4;                       // kCFNumberSInt64Type
constexpr std::uint32_t kUtf8 = 0x08000100;          // kCFStringEncodingUTF8
constexpr const char* kOnBattery = "Battery Power";  // kIOPSBatteryPowerValue

/// A function of a library by its name, as what it is assigned to.
class Symbol {
 public:
  Symbol(void* library, const char* name) : address_(library == nullptr ? nullptr : dlsym(library, name)) {}
  template <typename Function>
  operator Function*() const noexcept {  // NOLINT(google-explicit-constructor): that is what it is for
    return reinterpret_cast<Function*>(address_);
  }

 private:
  void* address_;
};

/// Stays open: what is asked once is asked again.
void* framework(const char* path) { return dlopen(path, RTLD_LAZY | RTLD_LOCAL); }

struct CoreFoundation {
  void* library = framework("/System/Library/Frameworks/CoreFoundation.framework/CoreFoundation");
  void (*release)(Object) = Symbol(library, "CFRelease");
  Object (*make_string)(Object allocator, const char* text,
                        std::uint32_t encoding) = Symbol(library, "CFStringCreateWithCString");
  Index (*compare)(Object a, Object b, unsigned long options) = Symbol(library, "CFStringCompare");
  unsigned long (*type_of)(Object) = Symbol(library, "CFGetTypeID");
  unsigned long (*type_of_numbers)() = Symbol(library, "CFNumberGetTypeID");
  unsigned char (*number)(Object, Index type, void* value) = Symbol(library, "CFNumberGetValue");
  [[nodiscard]] bool complete() const {
    return release != nullptr && make_string != nullptr && compare != nullptr && type_of != nullptr &&
           type_of_numbers != nullptr && number != nullptr;
  }
};

struct IoKit {
  void* library = framework("/System/Library/Frameworks/IOKit.framework/IOKit");
  void* (*matching)(const char* name) = Symbol(library, "IOServiceMatching");
  Port (*service)(Port main, const void* matching) = Symbol(library, "IOServiceGetMatchingService");
  Object (*property)(Port entry, Object key, Object allocator,
                     std::uint32_t options) = Symbol(library, "IORegistryEntryCreateCFProperty");
  int (*release)(Port) = Symbol(library, "IOObjectRelease");
  Object (*sources)() = Symbol(library, "IOPSCopyPowerSourcesInfo");
  Object (*providing)(Object sources) = Symbol(library, "IOPSGetProvidingPowerSourceType");
  [[nodiscard]] bool complete() const {
    return matching != nullptr && service != nullptr && property != nullptr && release != nullptr &&
           sources != nullptr && providing != nullptr;
  }
};

class AppleMachineUse final : public MachineUse {
 public:
  UseReading read() override {
    if (!cf_.complete() || !io_.complete()) return {};
    return {input_idle(), std::nullopt, on_battery()};
  }

 private:
  [[nodiscard]] std::optional<double> input_idle() const {
    const Port hid = io_.service(kNoPort, io_.matching("IOHIDSystem"));  // which releases what matches
    if (hid == kNoPort) return std::nullopt;
    const Object key = cf_.make_string(nullptr, "HIDIdleTime", kUtf8);
    const Object value = key == nullptr ? nullptr : io_.property(hid, key, nullptr, 0);
    io_.release(hid);
    if (key != nullptr) cf_.release(key);
    if (value == nullptr) return std::nullopt;
    std::int64_t nanoseconds = 0;
    const bool known = cf_.type_of(value) == cf_.type_of_numbers() && cf_.number(value, kSigned64, &nanoseconds) != 0;
    cf_.release(value);
    if (!known) return std::nullopt;
    return static_cast<double>(nanoseconds) * 1e-9;
  }

  [[nodiscard]] std::optional<bool> on_battery() const {
    const Object sources = io_.sources();
    if (sources == nullptr) return std::nullopt;
    const Object from = io_.providing(sources);  // not ours to release
    const Object battery = cf_.make_string(nullptr, kOnBattery, kUtf8);
    std::optional<bool> answer;
    if (from != nullptr && battery != nullptr) answer = cf_.compare(from, battery, 0) == 0;
    if (battery != nullptr) cf_.release(battery);
    cf_.release(sources);
    return answer;
  }

  CoreFoundation cf_;
  IoKit io_;
};

}  // namespace

std::unique_ptr<MachineUse> make_machine_use() { return std::make_unique<AppleMachineUse>(); }

}  // namespace motley::machine

#endif

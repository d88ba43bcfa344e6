#include <windows.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "machine/machine_use.h"

namespace motley::machine {
namespace {

std::uint64_t ticks(const FILETIME& time) { return std::uint64_t{time.dwHighDateTime} << 32 | time.dwLowDateTime; }

struct Spent {
  std::uint64_t total = 0, idle = 0, own = 0;  // in 100 ns, of all processors
};

std::optional<Spent> spent() {
  FILETIME idle{}, kernel{}, user{}, created{}, ended{}, own_kernel{}, own_user{};
  if (::GetSystemTimes(&idle, &kernel, &user) == 0 ||
      ::GetProcessTimes(::GetCurrentProcess(), &created, &ended, &own_kernel, &own_user) == 0) {
    return std::nullopt;
  }
  return Spent{ticks(kernel) + ticks(user), ticks(idle), ticks(own_kernel) + ticks(own_user)};  // kernel has idle in it
}

class WindowsMachineUse final : public MachineUse {
 public:
  UseReading read() override { return {input_idle(), load(), on_battery()}; }

 private:
  static std::optional<double> input_idle() {
    LASTINPUTINFO last{};
    last.cbSize = sizeof last;
    if (::GetLastInputInfo(&last) == 0) return std::nullopt;
    return static_cast<double>(::GetTickCount() - last.dwTime) / 1000;  // both begin anew every 49 days
  }

  std::optional<double> load() {
    const std::optional<Spent> now = spent();
    const std::optional<Spent> before = std::exchange(last_, now);
    if (!now || !before || now->total <= before->total) return std::nullopt;
    const auto since = [&](auto member) { return static_cast<double>((*now).*member - (*before).*member); };
    const double total = since(&Spent::total);
    return std::clamp((total - since(&Spent::idle) - since(&Spent::own)) / total, 0.0, 1.0);
  }

  static std::optional<bool> on_battery() {
    constexpr BYTE kNoBattery = 128, kUnknown = 255;
    SYSTEM_POWER_STATUS status{};
    if (::GetSystemPowerStatus(&status) == 0 || status.ACLineStatus == kUnknown) return std::nullopt;
    if (status.BatteryFlag == kUnknown || (status.BatteryFlag & kNoBattery) != 0) return std::nullopt;
    return status.ACLineStatus == 0;
  }

  std::optional<Spent> last_;
};

}  // namespace

std::unique_ptr<MachineUse> make_machine_use() { return std::make_unique<WindowsMachineUse>(); }

}  // namespace motley::machine

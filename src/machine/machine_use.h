#pragma once
// What the system says of the people and programs that use this machine, and of its power. One thread at a time.

#include <filesystem>
#include <memory>
#include <optional>

namespace motley::machine {

/// What is empty the system does not tell.
struct UseReading {
  std::optional<double> input_idle_s{};  // since somebody typed, clicked or moved something
  std::optional<double> others_load{};   // part of all processors that other programs took since the last reading
  std::optional<bool> on_battery{};
};

class MachineUse {
 public:
  virtual ~MachineUse() = default;
  virtual UseReading read() = 0;
};

/// Of this machine: on macOS from IOKit, on Windows as it tells; elsewhere from files, as in `root`: the access times
/// of terminals (what `w` goes by), /proc/stat less what this process took itself, and /sys/class/power_supply.
/// Programs that run nicely do not count as use: they have said that they can wait.
std::unique_ptr<MachineUse> make_machine_use();
std::unique_ptr<MachineUse> make_file_machine_use(std::filesystem::path root);

}  // namespace motley::machine

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include "machine/machine_use.h"

namespace motley::machine {
namespace {

namespace fs = std::filesystem;

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

std::string word_in(const fs::path& file) {
  std::ifstream in(file);
  std::string word;
  std::getline(in, word);
  return word;
}

template <class F>
void for_each_entry(const fs::path& directory, F&& f) {
  std::error_code code;
  for (fs::directory_iterator entry(directory, code), end; !code && entry != end; entry.increment(code))
    f(entry->path());
}

// Clock ticks since the machine started.
struct Ticks {
  std::uint64_t total = 0, busy = 0, nice = 0;  // of all processors
  std::uint64_t own = 0, own_user = 0;          // of this process
};

std::optional<Ticks> read_ticks(const fs::path& proc) {
  Ticks ticks;
  std::ifstream machine(proc / "stat");
  std::string name;
  std::array<std::uint64_t, 8> spent{};  // user, nice, system, idle, iowait, irq, softirq, steal
  machine >> name;
  for (std::uint64_t& value : spent) machine >> value;
  if (!machine || name != "cpu") return std::nullopt;
  for (const std::uint64_t value : spent) ticks.total += value;
  ticks.busy = ticks.total - spent[3] - spent[4] - spent[7];
  ticks.nice = spent[1];

  std::ifstream self(proc / "self" / "stat");
  std::string text;
  std::getline(self, text);
  // "pid (name) state …": the name may hold anything; utime and stime are the 12th and 13th word after it.
  const std::size_t after_name = text.rfind(')');
  if (after_name == std::string::npos) return std::nullopt;
  std::istringstream words(text.substr(after_name + 1));
  for (int i = 0; i < 11; ++i) words >> name;
  std::uint64_t system = 0;
  words >> ticks.own_user >> system;
  if (!words) return std::nullopt;
  ticks.own = ticks.own_user + system;
  return ticks;
}

class FileMachineUse final : public MachineUse {
 public:
  explicit FileMachineUse(fs::path root) : root_(std::move(root)) {}
  UseReading read() override { return {input_idle(), load(), on_battery()}; }

 private:
  // The system touches a terminal's access time when input is read from it, at most every 8 s.
  [[nodiscard]] std::optional<double> input_idle() const {
    std::optional<std::time_t> newest;
    const auto look = [&newest](const fs::path& terminal) {
      struct stat status{};
      if (stat(terminal.c_str(), &status) == 0) newest = std::max(newest.value_or(status.st_atime), status.st_atime);
    };
    for_each_entry(root_ / "dev" / "pts", [&](const fs::path& path) {
      if (all_digits(path.filename().string())) look(path);
    });
    for_each_entry(root_ / "dev", [&](const fs::path& path) {
      const std::string name = path.filename().string();
      if (name.starts_with("tty") && all_digits(std::string_view(name).substr(name.starts_with("ttys") ? 4 : 3)))
        look(path);
    });
    if (!newest) return std::nullopt;
    const auto now = std::chrono::system_clock::now();
    return std::max(0.0, std::chrono::duration<double>(now - std::chrono::system_clock::from_time_t(*newest)).count());
  }

  std::optional<double> load() {
    const std::optional<Ticks> now = read_ticks(root_ / "proc");
    const std::optional<Ticks> before = std::exchange(last_, now);
    if (!now || !before || now->total <= before->total) return std::nullopt;
    const auto spent = [&](auto member) { return static_cast<double>((*now).*member - (*before).*member); };
    // Our computing threads are nice too: what is more than they took is of others who can wait.
    const double others_nice = std::max(0.0, spent(&Ticks::nice) - spent(&Ticks::own_user));
    const double others = spent(&Ticks::busy) - spent(&Ticks::own) - others_nice;
    return std::clamp(others / spent(&Ticks::total), 0.0, 1.0);
  }

  [[nodiscard]] std::optional<bool> on_battery() const {
    bool battery = false, discharging = false, mains = false, online = false;
    for_each_entry(root_ / "sys" / "class" / "power_supply", [&](const fs::path& supply) {
      const std::string type = word_in(supply / "type");
      if (type == "Battery") {
        if (word_in(supply / "scope") == "Device") return;  // of a mouse or a headset
        battery = true;
        discharging = discharging || word_in(supply / "status") == "Discharging";
      } else if (type == "Mains" || type == "USB") {
        mains = mains || type == "Mains";
        online = online || word_in(supply / "online") == "1";
      }
    });
    if (!battery) return std::nullopt;
    return !online && (discharging || mains);
  }

  fs::path root_;
  std::optional<Ticks> last_;
};

}  // namespace

std::unique_ptr<MachineUse> make_file_machine_use(fs::path root) {
  return std::make_unique<FileMachineUse>(std::move(root));
}

#ifndef __APPLE__
std::unique_ptr<MachineUse> make_machine_use() { return make_file_machine_use("/"); }
#endif

}  // namespace motley::machine

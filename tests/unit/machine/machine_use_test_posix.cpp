// What a machine says of itself, read from trees of files made up here.

#include "machine/machine_use.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <chrono>
#include <fstream>

#include "../store/temporary.h"

namespace motley::machine {
namespace {

namespace fs = std::filesystem;
using store::test::TemporaryDirectory;

struct Machine {
  TemporaryDirectory root;

  void write(const fs::path& name, const std::string& text) const {
    const fs::path file = root / name;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void terminal(const fs::path& name, std::chrono::seconds idle) const {
    write(name, "");
    const auto used = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now() - idle);
    const std::array<timespec, 2> times{{{used, 0}, {used, 0}}};
    ASSERT_EQ(utimensat(AT_FDCWD, (root / name).c_str(), times.data(), 0), 0);
  }
  // Ticks since the start, of all and of this process.
  void spent(int user, int nice, int idle, int own_user, int own_system) const {
    write("proc/stat", "cpu  " + std::to_string(user) + " " + std::to_string(nice) + " 100 " + std::to_string(idle) +
                           " 50 0 0 0 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n");
    write("proc/self/stat", "4711 (mot) ley (x) R 1 1 1 0 -1 4194304 1 0 0 0 " + std::to_string(own_user) + " " +
                                std::to_string(own_system) + " 0 0 20 0 9 0 5\n");
  }
  void supply(const std::string& name, const std::string& type, const std::string& file,
              const std::string& value) const {
    write("sys/class/power_supply/" + name + "/type", type + "\n");
    write("sys/class/power_supply/" + name + "/" + file, value + "\n");
  }
  UseReading read() const { return make_file_machine_use(root.path())->read(); }
};

TEST(MachineUse, AnEmptyTreeTellsNothing) {
  const UseReading reading = Machine().read();
  EXPECT_FALSE(reading.input_idle_s || reading.others_load || reading.on_battery);
}

TEST(MachineUse, TheTerminalUsedLastCounts) {
  const Machine machine;
  machine.terminal("dev/tty1", std::chrono::hours(5));
  machine.terminal("dev/pts/0", std::chrono::seconds(900));
  machine.terminal("dev/pts/12", std::chrono::seconds(300));
  machine.terminal("dev/tty", std::chrono::seconds(0));       // another name for the caller's
  machine.terminal("dev/ttyS0", std::chrono::seconds(0));     // a modem
  machine.terminal("dev/pts/ptmx", std::chrono::seconds(0));  // no terminal
  const UseReading reading = machine.read();
  ASSERT_TRUE(reading.input_idle_s);
  EXPECT_GE(*reading.input_idle_s, 300);
  EXPECT_LT(*reading.input_idle_s, 400);
}

TEST(MachineUse, LoadIsOfOthersWhoAreNotNice) {
  const Machine machine;
  machine.spent(1000, 500, 5000, 700, 10);
  const auto use = make_file_machine_use(machine.root.path());
  EXPECT_FALSE(use->read().others_load) << "there is nothing to compare with";
  machine.spent(1000, 900, 5600, 1100, 10);  // this process alone, and nicely
  EXPECT_DOUBLE_EQ(use->read().others_load.value(), 0);
  machine.spent(1300, 900, 6300, 1100, 10);
  EXPECT_DOUBLE_EQ(use->read().others_load.value(), 0.3);
  machine.spent(1500, 1500, 6500, 1200, 10);  // 100 of ours, 500 of others who are nice
  EXPECT_DOUBLE_EQ(use->read().others_load.value(), 0.2);
}

TEST(MachineUse, DamagedCountersTellNothing) {
  const Machine machine;
  for (const char* text : {"", "cpu", "cpu 1 2 x", "intr 1 2 3 4 5 6 7 8 9"}) {
    machine.spent(0, 0, 0, 0, 0);
    machine.write("proc/stat", text);
    const auto use = make_file_machine_use(machine.root.path());
    use->read();
    EXPECT_FALSE(use->read().others_load) << text;
  }
  machine.spent(9, 9, 9, 9, 9);
  machine.write("proc/self/stat", "4711 (motley) R 1 1");
  EXPECT_FALSE(machine.read().others_load);
}

TEST(MachineUse, CountersThatStandStillTellNothing) {
  const Machine machine;
  machine.spent(1000, 500, 5000, 700, 10);
  const auto use = make_file_machine_use(machine.root.path());
  use->read();
  EXPECT_FALSE(use->read().others_load);
}

TEST(MachineUse, BatteryPower) {
  const Machine laptop;
  laptop.supply("BAT0", "Battery", "status", "Discharging");
  laptop.supply("AC", "Mains", "online", "0");
  EXPECT_EQ(laptop.read().on_battery, true);
  laptop.supply("AC", "Mains", "online", "1");
  EXPECT_EQ(laptop.read().on_battery, false);
  laptop.supply("AC", "Mains", "online", "0");
  laptop.supply("BAT0", "Battery", "status", "Unknown");
  EXPECT_EQ(laptop.read().on_battery, true);
  laptop.supply("USBC", "USB", "online", "1");
  EXPECT_EQ(laptop.read().on_battery, false);
}

TEST(MachineUse, AMouseIsNoLaptop) {
  const Machine desktop;
  desktop.supply("AC", "Mains", "online", "1");
  EXPECT_FALSE(desktop.read().on_battery);
  desktop.supply("hid-1", "Battery", "status", "Discharging");
  desktop.write("sys/class/power_supply/hid-1/scope", "Device\n");
  EXPECT_FALSE(desktop.read().on_battery);
}

}  // namespace
}  // namespace motley::machine

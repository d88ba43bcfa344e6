#include "transport/interface.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace motley::transport {
namespace {

namespace fs = std::filesystem;

/// A /sys of its own.
class Sys : public testing::Test {
 protected:
  Sys() : root_(fs::path(testing::TempDir()) / ("motley-interfaces-" + std::to_string(::getpid()))) {
    fs::remove_all(root_);
  }
  ~Sys() override { fs::remove_all(root_); }
  fs::path add(const std::string& name, bool device = true) {
    const fs::path place = root_ / "sys/class/net" / name;
    fs::create_directories(place);
    if (device) fs::create_directories(place / "device");
    write(place / "type", "1\n");
    return place;
  }
  static void write(const fs::path& file, const std::string& text) { std::ofstream(file) << text; }
  fs::path root_;
};

TEST_F(Sys, ACable) {
  const fs::path place = add("eth0");
  write(place / "speed", "1000\n");
  write(place / "duplex", "full\n");
  EXPECT_EQ(read_interface("eth0", root_), (Interface{InterfaceKind::cable, 1000, false, "eth0"}));
  write(place / "speed", "100\n");
  write(place / "duplex", "half\n");
  EXPECT_EQ(read_interface("eth0", root_), (Interface{InterfaceKind::cable, 100, true, "eth0"}));
}

TEST_F(Sys, ASpeedThatIsNotKnown) {
  const fs::path place = add("eth0");
  EXPECT_EQ(read_interface("eth0", root_).mbit_per_s, 0U);
  for (const char* text : {"-1\n", "", "unknown\n", "99999999999999999999\n", "4294967295\n"}) {
    write(place / "speed", text);
    EXPECT_EQ(read_interface("eth0", root_), (Interface{InterfaceKind::cable, 0, false, "eth0"})) << text;
  }
}

TEST_F(Sys, WiFiInBothOfItsShapes) {
  fs::create_directories(add("wlan0") / "wireless");
  fs::create_directories(add("wlp2s0") / "phy80211");
  for (const char* name : {"wlan0", "wlp2s0"}) EXPECT_EQ(read_interface(name, root_).kind, InterfaceKind::wifi);
}

TEST_F(Sys, ASpeedOfWhatHasNoDeviceIsNoSpeed) {
  write(add("veth0", false) / "speed", "10000\n");
  EXPECT_EQ(read_interface("veth0", root_), (Interface{InterfaceKind::virtual_, 0, false, "veth0"}));
}

TEST_F(Sys, NoSuchInterface) { EXPECT_EQ(read_interface("eth7", root_).kind, InterfaceKind::unknown); }

TEST(InterfaceTowards, ThisMachine) {
  const auto kind_towards = [](const std::string& address, bool same_machine = false) {
    PeerIdentity peer;
    peer.address = address;
    peer.same_machine = same_machine;
    return interface_towards(peer).kind;
  };
  EXPECT_EQ(kind_towards("127.0.0.1:7117"), InterfaceKind::loopback);
  EXPECT_EQ(kind_towards("this machine", true), InterfaceKind::loopback);
  for (const char* peer : {"", "inproc", "not an address:1", "[::", ":", "127.0.0.1:none"}) {
    EXPECT_EQ(kind_towards(peer), InterfaceKind::unknown) << peer;
  }
}

}  // namespace
}  // namespace motley::transport

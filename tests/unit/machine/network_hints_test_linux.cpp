#ifdef __linux__

#include "machine/network_hints.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace motley::machine {
namespace {

namespace fs = std::filesystem;

/// A Linux of its own.
class NetworkHints : public testing::Test {
 protected:
  NetworkHints() { fs::remove_all(root_); }
  ~NetworkHints() override { fs::remove_all(root_); }
  void write(const std::string& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  fs::path root_ = fs::path(testing::TempDir()) / ("motley-hints-" + std::to_string(::getpid()));
};

TEST_F(NetworkHints, NothingIsSaidWhereNothingIsKnown) {
  EXPECT_FALSE(firewall_command(7117, root_));
  EXPECT_TRUE(network_hints({"192.168.1.7"}, root_).empty());
}

TEST_F(NetworkHints, TheFirewallThatIsOnHasItsCommand) {
  write("etc/ufw/ufw.conf", "# a comment\nENABLED=no\nLOGLEVEL=low\n");
  EXPECT_FALSE(firewall_command(7117, root_));
  write("etc/ufw/ufw.conf", "# a comment\nENABLED=yes\nLOGLEVEL=low\n");
  EXPECT_EQ(firewall_command(7117, root_), "sudo ufw allow 7117/tcp");
  fs::remove_all(root_ / "etc");
  fs::create_directories(root_ / "sys/fs/cgroup/system.slice/firewalld.service");
  EXPECT_EQ(firewall_command(7200, root_), "sudo firewall-cmd --add-port=7200/tcp");
}

TEST_F(NetworkHints, WslHasANetworkAndAFirewallOfItsOwn) {
  write("proc/sys/kernel/osrelease", "5.15.153.1-microsoft-standard-WSL2\n");
  ASSERT_EQ(network_hints({"172.20.14.3"}, root_).size(), 1U);
  const std::string apart = network_hints({"172.20.14.3"}, root_).front().command;
  EXPECT_NE(apart.find("networkingMode=mirrored"), std::string::npos);
  EXPECT_NE(apart.find("Set-NetFirewallHyperVVMSetting"), std::string::npos) << "mirrored it would still be mute";
  EXPECT_NE(apart.find("join and not lead"), std::string::npos);
  for (const char* mirrored : {"192.168.1.7", "172.15.0.1"}) {
    ASSERT_EQ(network_hints({mirrored}, root_).size(), 1U) << mirrored;
    const std::string command = network_hints({mirrored}, root_).front().command;
    EXPECT_EQ(command.find("networkingMode"), std::string::npos) << command;
    EXPECT_NE(command.find("-DefaultInboundAction Allow"), std::string::npos) << command;
  }
  EXPECT_TRUE(network_hints({}, root_).empty());
  write("proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
  EXPECT_TRUE(network_hints({"172.20.14.3"}, root_).empty());
}

TEST_F(NetworkHints, AVpnThatTakesEverything) {
  const std::string head = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\n";
  write("proc/net/route",
        head + "eth0\t0001A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\nwg0\t00000000\t00000000\t0001\t0\t0\t0\t0\n");
  ASSERT_EQ(network_hints({"192.168.1.7"}, root_).size(), 1U);
  EXPECT_NE(network_hints({"192.168.1.7"}, root_).front().found.find("wg0"), std::string::npos);
  write("proc/net/route",
        head + "wg0\t0001A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\neth0\t00000000\t0101A8C0\t0003\t0\t0\t0\t0\n");
  EXPECT_TRUE(network_hints({"192.168.1.7"}, root_).empty()) << "one for a part alone";
}

}  // namespace
}  // namespace motley::machine

#endif

#include "transport/multicast.h"

#include <gtest/gtest.h>

#include <future>

#include "transport/crypto.h"

namespace motley::transport {
namespace {

/// What one member of a group of this test's own hears first.
class Member {
 public:
  explicit Member(std::uint16_t port) {
    auto opened = Multicast::open({"239.255.71.17", port}, [this](Multicast&, const Datagram& datagram) {
      if (heard_) return;
      heard_ = true;
      from_ = {datagram.address, datagram.port, datagram.network};
      first_.set_value({datagram.bytes.begin(), datagram.bytes.end()});
    });
    if (opened) multicast_ = std::move(*opened);
  }
  struct From {
    std::string address;
    std::uint16_t port = 0;
    std::size_t network = 0;
  } from_;
  std::promise<std::vector<std::byte>> first_;
  std::unique_ptr<Multicast> multicast_;  // goes first: its thread uses the others

 private:
  bool heard_ = false;
};

std::uint16_t some_port() { return static_cast<std::uint16_t>(20000 + random_u64() % 20000); }

TEST(MulticastTest, WhatIsSentToAllIsHeardByAllOfThisMachine) {
  if (local_networks().empty()) GTEST_SKIP() << "this machine is in no network";
  const std::uint16_t port = some_port();
  Member one(port), other(port);
  ASSERT_TRUE(one.multicast_ && other.multicast_) << "both share the port";
  const std::vector<std::byte> word{std::byte{1}, std::byte{2}};
  one.multicast_->send(word, 0);
  EXPECT_EQ(one.first_.get_future().get(), word);
  EXPECT_EQ(other.first_.get_future().get(), word);
  EXPECT_EQ(other.from_.address, one.multicast_->networks()[0].address);
  EXPECT_EQ(other.from_.port, port);
  EXPECT_EQ(other.from_.network, 0U);
}

TEST(MulticastTest, EndsWhileSomethingWaitsToBeSent) {
  if (local_networks().empty()) GTEST_SKIP() << "this machine is in no network";
  Member member(some_port());
  ASSERT_TRUE(member.multicast_);
  for (int i = 0; i < 100; ++i) member.multicast_->send(std::vector<std::byte>(1000), 0);
  member.multicast_->send_to(std::vector<std::byte>(70000), "127.0.0.1", 9);  // more than a datagram holds
  member.multicast_->flush();
  for (int i = 0; i < 100; ++i) member.multicast_->send(std::vector<std::byte>(1000), 0);
}

TEST(MulticastTest, AnAddressIsFourBytes) {
  EXPECT_EQ(ipv4_bytes("10.77.0.255"), (std::array<std::uint8_t, 4>{10, 77, 0, 255}));
  EXPECT_EQ(ipv4_bytes("fd00::2"), (std::array<std::uint8_t, 4>{}));
  EXPECT_EQ(ipv4_bytes(""), (std::array<std::uint8_t, 4>{}));
}

TEST(LocalNetworks, HaveAnAddressAMaskAndOneForAll) {
  for (const LocalNetwork& network : local_networks()) {
    const auto own = ipv4_bytes(network.address), mask = ipv4_bytes(network.mask), all = ipv4_bytes(network.broadcast);
    EXPECT_FALSE(network.interface.empty());
    EXPECT_NE(own[0], 127) << network.interface;
    for (std::size_t i = 0; i < own.size(); ++i) EXPECT_EQ(all[i], (own[i] | (~mask[i] & 255))) << network.address;
  }
}

}  // namespace
}  // namespace motley::transport

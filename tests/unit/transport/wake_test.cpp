#include "transport/wake.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace motley::transport {
namespace {

constexpr HardwareAddress kCard{0x02, 0x42, 0x0A, 0x4D, 0x00, 0xFF};

TEST(Wake, AnAddressIsReadAsItIsWritten) {
  EXPECT_EQ(to_text(kCard), "02:42:0a:4d:00:ff");
  EXPECT_EQ(parse_hardware_address("02:42:0a:4d:00:ff"), kCard);
  EXPECT_EQ(parse_hardware_address("02-42-0A-4D-00-FF"), kCard);
}

TEST(Wake, WhatNamesNoCardIsNoAddress) {
  for (const char* text : {"", "laptop", "02:42:0a:4d:00", "02:42:0a:4d:00:f", "02:42:0a:4d:00:fg",
                           "02:42:0a:4d:00:ff ", "0242:0a:4d:00:fff", "02.42.0a.4d.00.ff"})
    EXPECT_FALSE(parse_hardware_address(text)) << text;
  EXPECT_FALSE(parse_hardware_address("00:00:00:00:00:00"));
  EXPECT_FALSE(parse_hardware_address("ff:ff:ff:ff:ff:ff"));
  EXPECT_FALSE(parse_hardware_address("01:00:5e:00:00:fb")) << "a group of machines";
  EXPECT_FALSE(hardware_address_from(std::array<std::uint8_t, 5>{2, 1, 1, 1, 1}));
  EXPECT_EQ(hardware_address_from(kCard), kCard);
}

TEST(Wake, ThePacketIsSixTimesAllOnesAndSixteenTimesTheAddress) {
  const MagicPacket packet = magic_packet(kCard);
  ASSERT_EQ(packet.size(), 102U);
  EXPECT_TRUE(std::all_of(packet.begin(), packet.begin() + 6, [](std::byte b) { return b == std::byte{0xFF}; }));
  for (std::size_t copy = 0; copy < 16; ++copy)
    for (std::size_t i = 0; i < kCard.size(); ++i)
      EXPECT_EQ(packet[6 + copy * 6 + i], std::byte{kCard[i]}) << copy << ", " << i;
}

}  // namespace
}  // namespace motley::transport

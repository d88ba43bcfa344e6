#pragma once
// Waking a machine that sleeps by the address of its network card. Any thread.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "motley/result.h"

namespace motley::transport {

/// Of a network interface; all zero: none.
using HardwareAddress = std::array<std::uint8_t, 6>;

/// "02:42:0a:4d:00:0b".
std::string to_text(const HardwareAddress& address);
/// As to_text() writes it, also in capitals and with "-"; nothing for what names no single card.
std::optional<HardwareAddress> parse_hardware_address(std::string_view text);
/// Likewise, of as many bytes.
std::optional<HardwareAddress> hardware_address_from(std::span<const std::uint8_t> bytes);

/// Six times 255, then the address sixteen times.
using MagicPacket = std::array<std::byte, 102>;
MagicPacket magic_packet(const HardwareAddress& address);

/// Sends it on every network that this machine is in, to all there, to the port that wakes are sent to: 9. Returns how
/// it was sent: "eth0 (192.168.1.255)". Errors: network (this machine is in none, or none took it).
Result<std::vector<std::string>> wake(const HardwareAddress& address);

}  // namespace motley::transport

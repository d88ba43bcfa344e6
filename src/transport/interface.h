#pragma once
// The network interface of this machine that leads to an address: its kind, and the speed its link was negotiated at,
// where the system tells. Any thread.

#include <cstdint>
#include <filesystem>
#include <string>

#include "transport/connection.h"

namespace motley::transport {

enum class InterfaceKind : std::uint8_t { unknown = 0, loopback = 1, cable = 2, wifi = 3, virtual_ = 4 };
inline constexpr std::uint8_t kInterfaceKinds = 5;

const char* to_word(InterfaceKind kind) noexcept;

struct Interface {
  InterfaceKind kind = InterfaceKind::unknown;
  std::uint32_t mbit_per_s = 0;  // 0: not known
  bool half_duplex = false;
  std::string name;  // empty: not known
  bool operator==(const Interface&) const = default;
};

/// Linux: what `root`/sys/class/net says of it. The speed of a virtual interface is a made-up one, and left out.
Interface read_interface(const std::string& name, const std::filesystem::path& root = "/");

/// Loopback also where it is a local socket.
Interface interface_towards(const PeerIdentity& peer);

}  // namespace motley::transport

#include "transport/wake.h"

#include <algorithm>

#include "base/format.h"
#include "base/hex.h"
#include "transport/addresses.h"
#include "transport/tcp/address.h"
#include "transport/tcp/net.h"

namespace motley::transport {
namespace {

constexpr std::uint16_t kDiscardPort = 9;

}  // namespace

std::string to_text(const HardwareAddress& address) {
  std::string text;
  for (const std::uint8_t byte : address) text += formatted(text.empty() ? "%02x" : ":%02x", byte);
  return text;
}

std::optional<HardwareAddress> hardware_address_from(std::span<const std::uint8_t> bytes) {
  HardwareAddress address{};
  if (bytes.size() != address.size()) return std::nullopt;
  std::ranges::copy(bytes, address.begin());
  const bool of_many = (address.front() & 1) != 0;  // multicast, and broadcast
  if (of_many || address == HardwareAddress{}) return std::nullopt;
  return address;
}

std::optional<HardwareAddress> parse_hardware_address(std::string_view text) {
  HardwareAddress address{};
  if (text.size() != 3 * address.size() - 1) return std::nullopt;
  for (std::size_t i = 0; i < address.size(); ++i) {
    const int high = hex_digit(text[3 * i]), low = hex_digit(text[3 * i + 1]);
    const char behind = i + 1 < address.size() ? text[3 * i + 2] : ':';
    if (high < 0 || low < 0 || (behind != ':' && behind != '-')) return std::nullopt;
    address[i] = static_cast<std::uint8_t>(high * 16 + low);
  }
  return hardware_address_from(address);
}

MagicPacket magic_packet(const HardwareAddress& address) {
  MagicPacket packet{};
  std::fill_n(packet.begin(), address.size(), std::byte{0xFF});
  for (std::size_t i = address.size(); i < packet.size(); ++i) packet[i] = std::byte{address[i % address.size()]};
  return packet;
}

Result<std::vector<std::string>> wake(const HardwareAddress& address) {
  using net::ip::udp;
  const MagicPacket packet = magic_packet(address);
  std::vector<std::string> sent;
  std::string why = "it is in no network with other machines";
  net::io_context io;
  for (const LocalNetwork& network : local_networks()) {
    NetError error;
    const auto own = net::ip::make_address_v4(network.address, error);
    const auto everybody = net::ip::make_address_v4(network.broadcast, error);
    udp::socket socket(io);
    if (!error) socket.open(udp::v4(), error);
    if (!error) socket.set_option(net::socket_base::broadcast(true), error);
    if (!error) socket.bind(udp::endpoint(own, 0), error);
    if (!error) socket.send_to(net::buffer(packet), udp::endpoint(everybody, kDiscardPort), 0, error);
    const std::string where = network.interface + " (" + network.broadcast + ")";
    if (error) {
      why = where + ": " + reason_of(error);
    } else {
      sent.push_back(where);
    }
  }
  if (sent.empty()) {
    return Error{ErrorCode::network, "this machine cannot send to all in its network: " + why,
                 "motley doctor; a machine is woken from within its own network only"};
  }
  return sent;
}

}  // namespace motley::transport

#include "transport/tcp/address.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"
#include "transport/tcp/local_socket.h"

namespace motley::transport {
namespace {

net::ip::address plain(const net::ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    return net::ip::make_address_v4(net::ip::v4_mapped, address.to_v6());
  }
  return address;
}

net::ip::tcp::endpoint network_address(const SocketAddress& address) {
  MOTLEY_ASSERT(!is_local(address));
  net::ip::tcp::endpoint result;
  // On Windows the address of whoever was accepted is as long as there is room for one.
  const std::size_t size = std::min(address.size(), result.capacity());
  std::memcpy(result.data(), address.data(), size);
  result.resize(size);
  return result;
}

std::string joined(const std::string& host, std::uint16_t port) {
  const bool bare_v6 = host.find(':') != std::string::npos && host.front() != '[';
  return (bare_v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

}  // namespace

std::string text_of(const net::ip::tcp::endpoint& endpoint) {
  return joined(plain(endpoint.address()).to_string(), endpoint.port());
}

std::string text_of(const Endpoint& endpoint) {
  return is_local(endpoint) ? endpoint.host : joined(endpoint.host, endpoint.port);
}

std::uint16_t port_of(const SocketAddress& address) { return is_local(address) ? 0 : network_address(address).port(); }

bool is_local(const Endpoint& endpoint) { return endpoint.host.starts_with('@'); }

std::optional<Peer> peer_of(Socket& socket) {
  NetError error;
  const SocketAddress remote = socket.remote_endpoint(error);
  if (error) return std::nullopt;
  if (is_local(remote)) {
    if (!same_user(socket)) return std::nullopt;
    return Peer{"this machine", "this machine", true};
  }
  const net::ip::tcp::endpoint address = network_address(remote);
  return Peer{text_of(address), source_of(address.address()), false};
}

Endpoint local_endpoint(std::string_view name) { return {"@" + std::string(name), 0}; }

std::string source_of(const net::ip::address& address) {
  const net::ip::address source = plain(address);
  if (source.is_v4()) return source.to_string();
  auto bytes = source.to_v6().to_bytes();
  std::fill(bytes.begin() + 8, bytes.end(), static_cast<unsigned char>(0));
  return net::ip::address_v6(bytes).to_string() + "/64";
}

std::string reason_of(const NetError& error, bool on_mac) {
  if (error == net::error::connection_refused) return "nothing listens there (connection refused)";
  if (error == net::error::connection_reset || error == net::error::broken_pipe)
    return "the other side is gone (reset)";
  if (error == net::error::host_unreachable && on_mac)
    return "no route to it, or macOS keeps this program from the local network: System Settings, Privacy & Security, "
           "Local Network";
  if (error == net::error::host_unreachable || error == net::error::network_unreachable) return "no route to it";
  if (error == net::error::timed_out) return "it does not answer";
  if (error == net::error::host_not_found || error == net::error::no_data) return "no machine of this name is known";
  if (error == net::error::host_not_found_try_again) return "the name service does not answer";
  return error.message();
}

Error connection_ended(const std::string& address, const std::string& why) {
  return {ErrorCode::network, "the connection with " + address + " ended: " + why, ""};
}

}  // namespace motley::transport

#include "transport/tcp/address.h"

namespace motley::transport {
namespace {

net::ip::address plain(const net::ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    return net::ip::make_address_v4(net::ip::v4_mapped, address.to_v6());
  }
  return address;
}

std::string joined(const std::string& host, std::uint16_t port) {
  const bool bare_v6 = host.find(':') != std::string::npos && host.front() != '[';
  return (bare_v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

}  // namespace

std::string text_of(const net::ip::tcp::endpoint& endpoint) {
  return joined(plain(endpoint.address()).to_string(), endpoint.port());
}

std::string text_of(const Endpoint& endpoint) { return joined(endpoint.host, endpoint.port); }

std::string source_of(const net::ip::address& address) {
  const net::ip::address source = plain(address);
  if (source.is_v4()) return source.to_string();
  auto bytes = source.to_v6().to_bytes();
  std::fill(bytes.begin() + 8, bytes.end(), static_cast<unsigned char>(0));
  return net::ip::address_v6(bytes).to_string() + "/64";
}

std::string reason_of(const NetError& error) {
  if (error == net::error::connection_refused) return "nothing listens there (connection refused)";
  if (error == net::error::connection_reset || error == net::error::broken_pipe)
    return "the other side is gone (reset)";
  if (error == net::error::host_unreachable || error == net::error::network_unreachable) return "no route to it";
  if (error == net::error::timed_out) return "it does not answer";
  if (error == net::error::host_not_found || error == net::error::no_data) return "no machine of this name is known";
  if (error == net::error::host_not_found_try_again) return "the name service does not answer";
  return error.message();
}

}  // namespace motley::transport

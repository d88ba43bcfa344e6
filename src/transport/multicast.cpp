#include "transport/multicast.h"

#include <algorithm>
#include <cerrno>
#include <future>
#include <thread>
#include <utility>

#include "transport/tcp/net.h"

namespace motley::transport {
namespace {

using net::ip::udp;
constexpr std::size_t kDatagramBytesMax = 9000;
constexpr std::size_t kNetworksMax = 32;
constexpr int kHops = 255;  // receivers may look whether nobody handed it on

std::uint32_t number_of(const std::string& address) {
  NetError error;
  const auto parsed = net::ip::make_address_v4(address, error);
  return error ? 0 : parsed.to_uint();
}

NetError share_port(udp::socket& socket) {
  NetError error;
  socket.set_option(udp::socket::reuse_address(true), error);
#if defined(SO_REUSEPORT) && !defined(__linux__)  // there it would want all who share to be one user's
  const int on = 1;
  if (!error && ::setsockopt(socket.native_handle(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0)
    error = NetError(errno, net::error::get_system_category());
#endif
  return error;
}

}  // namespace

struct Multicast::Impl {
  Impl(MulticastGroup to, Handler on_datagram) : group(std::move(to)), handler(std::move(on_datagram)), socket(io) {}

  Status open();
  void receive(Multicast& owner);
  void deliver(Multicast& owner, std::size_t count);

  const MulticastGroup group;
  const Handler handler;
  net::io_context io;
  udp::socket socket;
  std::vector<LocalNetwork> networks;  // that it joined
  std::vector<std::byte> buffer = std::vector<std::byte>(kDatagramBytesMax + 1);
  udp::endpoint from;
  std::thread thread;
};

Status Multicast::Impl::open() {
  const auto refused = [this](const std::string& what) {
    return Error{ErrorCode::network,
                 "cannot hear " + group.address + ", port " + std::to_string(group.port) + ": " + what,
                 "motley doctor"};
  };
  NetError error;
  socket.open(udp::v4(), error);
  if (!error) error = share_port(socket);
  if (!error) socket.bind(udp::endpoint(net::ip::address_v4::any(), group.port), error);
  if (error) return refused(error.message());
  const auto to = net::ip::make_address_v4(group.address, error);
  std::string why = "this machine is in no network with others";
  for (const LocalNetwork& network : local_networks()) {
    if (networks.size() == kNetworksMax) break;
    NetError problem;
    const net::ip::address_v4 own(number_of(network.address));
    socket.set_option(net::ip::multicast::join_group(to, own), problem);
    const bool again = problem == net::error::address_in_use;  // two addresses of one interface
    if (!problem || again) {
      networks.push_back(network);
    } else {
      why = network.interface + ": " + problem.message();
    }
  }
  if (networks.empty()) return refused(why);
  socket.set_option(net::ip::multicast::enable_loopback(true), error);  // heads of this machine are found too
  if (!error) socket.set_option(net::ip::multicast::hops(kHops), error);
  if (error) return refused(error.message());
  return {};
}

void Multicast::Impl::receive(Multicast& owner) {
  socket.async_receive_from(net::buffer(buffer), from, [this, &owner](const NetError& error, std::size_t count) {
    if (error == net::error::operation_aborted || !socket.is_open()) return;
    // Windows tells here that a datagram sent before found nobody.
    if (!error && count <= kDatagramBytesMax) deliver(owner, count);
    receive(owner);
  });
}

void Multicast::Impl::deliver(Multicast& owner, std::size_t count) {
  if (!from.address().is_v4()) return;
  const std::uint32_t sender = from.address().to_v4().to_uint();
  const auto network = std::ranges::find_if(networks, [sender](const LocalNetwork& each) {
    const std::uint32_t mask = number_of(each.mask);
    return (number_of(each.address) & mask) == (sender & mask);
  });
  if (network == networks.end()) return;
  handler(owner, {std::span(buffer).first(count), static_cast<std::size_t>(network - networks.begin()),
                  from.address().to_string(), from.port()});
}

Multicast::Multicast(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {
  impl_->receive(*this);
  impl_->thread = std::thread([this] { impl_->io.run(); });
}

Multicast::~Multicast() {
  net::post(impl_->io, [this] {
    NetError ignored;
    impl_->socket.close(ignored);
  });
  impl_->thread.join();
}

Result<std::unique_ptr<Multicast>> Multicast::open(const MulticastGroup& group, Handler handler) {
  auto impl = std::make_unique<Impl>(group, std::move(handler));
  if (Status status = impl->open(); !status) return status.error();
  return std::unique_ptr<Multicast>(new Multicast(std::move(impl)));
}

const std::vector<LocalNetwork>& Multicast::networks() const noexcept { return impl_->networks; }

void Multicast::send(std::vector<std::byte> bytes, std::size_t network) {
  net::post(impl_->io, [this, bytes = std::move(bytes), network] {
    NetError error;
    const net::ip::address_v4 own(number_of(impl_->networks.at(network).address));
    impl_->socket.set_option(net::ip::multicast::outbound_interface(own), error);
    if (error) return;
    const udp::endpoint to(net::ip::address_v4(number_of(impl_->group.address)), impl_->group.port);
    impl_->socket.send_to(net::buffer(bytes), to, 0, error);
  });
}

void Multicast::send_to(std::vector<std::byte> bytes, const std::string& address, std::uint16_t port) {
  net::post(impl_->io, [this, bytes = std::move(bytes), to = number_of(address), port] {
    NetError error;
    impl_->socket.send_to(net::buffer(bytes), udp::endpoint(net::ip::address_v4(to), port), 0, error);
  });
}

void Multicast::flush() {
  std::promise<void> sent;
  net::post(impl_->io, [&sent] { sent.set_value(); });
  sent.get_future().wait();
}

std::array<std::uint8_t, 4> ipv4_bytes(const std::string& address) {
  const std::uint32_t number = number_of(address);
  return {static_cast<std::uint8_t>(number >> 24), static_cast<std::uint8_t>(number >> 16 & 255),
          static_cast<std::uint8_t>(number >> 8 & 255), static_cast<std::uint8_t>(number & 255)};
}

}  // namespace motley::transport

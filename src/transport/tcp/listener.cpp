#include "transport/tcp/listener.h"

#include <cerrno>

#include "base/assert.h"
#include "transport/tcp/address.h"
#include "transport/tcp/not_inherited.h"

namespace motley::transport {
namespace {

using net::ip::tcp;

constexpr std::chrono::milliseconds kRetryTime{100};  // when the system is out of descriptors

// Asio names every error but this one, and its category does not map to std::errc.
#ifdef _WIN32
constexpr int kAddressNotAvailable = WSAEADDRNOTAVAIL;
#else
constexpr int kAddressNotAvailable = EADDRNOTAVAIL;
#endif

Error listen_error(const Endpoint& endpoint, const NetError& error) {
  const std::string address = text_of(endpoint);
  if (error == net::error::address_in_use) {
    return {ErrorCode::busy, address + " is in use by another program", "choose another port with --listen"};
  }
  if (error == net::error::access_denied) {
    return {ErrorCode::network, "the system does not let this user listen on " + address,
            "choose a port above 1023 with --listen"};
  }
  if (error.value() == kAddressNotAvailable) {
    return {ErrorCode::input, "this machine has no address " + endpoint.host,
            "listen on 0.0.0.0 (all addresses) or on one of this machine"};
  }
  return {ErrorCode::network, "cannot listen on " + address + ": " + error.message(), ""};
}

/// All access to the acceptor is under the mutex, so that close() frees the port before it returns.
class Acceptor final : public Activity, public std::enable_shared_from_this<Acceptor> {
 public:
  Acceptor(Hub& hub, AcceptHandler on_accept)
      : hub_(hub),
        acceptor_(hub.io()),
        retry_timer_(hub.io()),
        on_accept_(std::make_shared<const AcceptHandler>(std::move(on_accept))) {}

  Status open(const Endpoint& endpoint, const SocketAddress& address) {
    const int family = address.protocol().family();
    NetError error;
    acceptor_.open(address.protocol(), error);
    if (!error) not_inherited_.hold(acceptor_.native_handle());
#ifndef _WIN32  // there it would let two programs share the port
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
#endif
    if (!error && family == AF_INET6) {
      acceptor_.set_option(net::ip::v6_only(false), error);
    }
    if (!error) acceptor_.bind(address, error);
    if (!error) acceptor_.listen(tcp::acceptor::max_listen_connections, error);
    if (error) return listen_error(endpoint, error);
    port_ = port_of(acceptor_.local_endpoint(error));
    return {};
  }
  void accept() {
    const std::lock_guard lock(mutex_);
    if (!acceptor_.is_open()) return;
    acceptor_.async_accept(net::make_strand(hub_.io()),
                           [self = shared_from_this()](const NetError& error, Socket socket) {
                             self->on_socket(error, std::move(socket));
                           });
  }
  void stop() override {
    {
      const std::lock_guard lock(mutex_);
      NetError ignored;
      not_inherited_.release([&] { acceptor_.close(ignored); });
      retry_timer_.cancel();
    }
    hub_.remove(this);
  }
  std::uint16_t port() const { return port_; }

 private:
  void on_socket(const NetError& error, Socket socket) {
    if (!error) {
      hub_.accepted(std::move(socket), on_accept_);
      return accept();
    }
    const std::lock_guard lock(mutex_);
    if (!acceptor_.is_open()) return;
    retry_timer_.expires_after(kRetryTime);
    retry_timer_.async_wait([self = shared_from_this()](const NetError& cancelled) {
      if (!cancelled) self->accept();
    });
  }

  Hub& hub_;
  std::mutex mutex_;
  net::basic_socket_acceptor<net::generic::stream_protocol> acceptor_;
  NotInherited not_inherited_;
  net::steady_timer retry_timer_;
  std::shared_ptr<const AcceptHandler> on_accept_;
  std::uint16_t port_ = 0;
};

class TcpListener final : public Listener {
 public:
  explicit TcpListener(const std::shared_ptr<Acceptor>& acceptor) : acceptor_(acceptor), port_(acceptor->port()) {}
  ~TcpListener() override { close(); }
  TcpListener(const TcpListener&) = delete;
  TcpListener& operator=(const TcpListener&) = delete;

  std::uint16_t port() const override { return port_; }
  void close() override {
    // Weak: after the Tcp is gone there is nothing left to close.
    if (const auto acceptor = acceptor_.lock()) acceptor->stop();
  }

 private:
  std::weak_ptr<Acceptor> acceptor_;
  std::uint16_t port_;
};

Result<SocketAddress> resolve_here(Hub& hub, const Endpoint& endpoint) {
  if (is_local(endpoint)) return local_address(endpoint);
  NetError error;
  const net::ip::address address = net::ip::make_address(endpoint.host, error);
  if (!error) return SocketAddress(tcp::endpoint(address, endpoint.port));
  tcp::resolver resolver(hub.io());
  const auto found = resolver.resolve(endpoint.host, std::to_string(endpoint.port), tcp::resolver::passive, error);
  if (!error && !found.empty()) return SocketAddress(found.begin()->endpoint());
  return Error{ErrorCode::input, "expected an address of this machine to listen on, found \"" + endpoint.host + "\"",
               "for example --listen 0.0.0.0:7001"};
}

}  // namespace

Result<std::unique_ptr<Listener>> make_listener(Hub& hub, Endpoint endpoint, AcceptHandler on_accept) {
  MOTLEY_ASSERT(on_accept != nullptr);
  if (endpoint.host.empty()) endpoint.host = "0.0.0.0";
  Result<SocketAddress> address = resolve_here(hub, endpoint);
  if (!address) return std::move(address).error();
  auto acceptor = std::make_shared<Acceptor>(hub, std::move(on_accept));
  if (Status status = acceptor->open(endpoint, *address); !status) return status.error();
  MOTLEY_ASSERT(hub.add(acceptor));
  acceptor->accept();
  return Result<std::unique_ptr<Listener>>(std::make_unique<TcpListener>(acceptor));
}

}  // namespace motley::transport

#include "transport/tcp/tcp.h"

#include "transport/tcp/connector.h"
#include "transport/tcp/hub.h"
#include "transport/tcp/listener.h"

namespace motley::transport {

struct Tcp::Impl {
  explicit Impl(TcpOptions options) : hub(std::move(options)) {}
  Hub hub;
};

Tcp::Tcp(TcpOptions options) : impl_(std::make_shared<Impl>(std::move(options))) {}

Tcp::~Tcp() { impl_->hub.shut_down(); }

Result<std::unique_ptr<Listener>> Tcp::listen(const Endpoint& endpoint, AcceptHandler on_accept) {
  return make_listener(impl_->hub, endpoint, std::move(on_accept));
}

void Tcp::connect(std::vector<Endpoint> endpoints, std::optional<Digest> pinned_spki, std::chrono::milliseconds timeout,
                  ConnectHandler on_done) {
  start_connecting(impl_->hub, std::move(endpoints), pinned_spki, timeout, std::move(on_done));
}

void Tcp::use_threads(std::size_t count) { impl_->hub.use_threads(count); }

std::uint64_t Tcp::dropped_connections() const { return impl_->hub.dropped(); }

}  // namespace motley::transport

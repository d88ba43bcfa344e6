#include "fixture.h"

namespace motley::transport {

wire::Frame make_frame(wire::FrameType type, std::uint64_t subject, std::size_t size, std::uint8_t seed) {
  std::vector<std::byte> body(size);
  for (std::size_t i = 0; i < size; ++i) body[i] = static_cast<std::byte>(i * 31 + seed + (i >> 8));
  wire::FrameHeader header;
  header.type = type;
  header.subject = subject;
  return wire::seal(header, SharedBytes::copy_of(body));
}

bool body_is(const wire::Frame& frame, std::size_t size, std::uint8_t seed) {
  if (frame.body.size() != size) return false;
  for (std::size_t i = 0; i < size; ++i) {
    if (frame.body.bytes()[i] != static_cast<std::byte>(i * 31 + seed + (i >> 8))) return false;
  }
  return true;
}

World::World(Kind kind) : kind_(kind) {
  if (kind == Kind::inproc) return;
  TcpOptions server, client;
  server.plaintext = client.plaintext = kind != Kind::tcp_tls;
  if (kind == Kind::tcp_tls) {
    server_identity_ = make_identity();
    client_identity_ = make_identity();
  }
  server.identity = server_identity_;
  client.identity = client_identity_;
  server_tcp_ = std::make_unique<Tcp>(server);
  client_tcp_ = std::make_unique<Tcp>(client);
  endpoint_ = {"127.0.0.1", 0};
  if (kind == Kind::local) endpoint_ = local_endpoint("motley-test-" + std::to_string(random_u64()));
  auto listener = server_tcp_->listen(endpoint_, [this](std::shared_ptr<Connection> connection) {
    const std::lock_guard lock(mutex_);
    accepted_.push_back(std::move(connection));
    changed_.notify_all();
  });
  if (!listener) throw std::runtime_error(listener.error().message);
  listener_ = std::move(listener).value();
  endpoint_.port = listener_->port();
}

Ends World::connect() {
  if (kind_ == Kind::inproc) {
    auto [client, server] = make_inproc_pair();
    return {client, server};
  }
  std::promise<Result<std::shared_ptr<Connection>>> promise;
  std::optional<Digest> pin;
  if (server_identity_) pin = server_identity_->spki;
  client_tcp_->connect({endpoint_}, pin, kPatience,
                       [&](Result<std::shared_ptr<Connection>> result) { promise.set_value(std::move(result)); });
  auto connected = promise.get_future().get();
  if (!connected) throw std::runtime_error(connected.error().message);
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, kPatience, [this] { return !accepted_.empty(); })) {
    throw std::runtime_error("nothing was accepted");
  }
  Ends ends{std::move(connected).value(), std::move(accepted_.back())};
  accepted_.pop_back();
  ends.server->mark_proven();
  return ends;
}

}  // namespace motley::transport

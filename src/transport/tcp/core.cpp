#include "transport/tcp/core.h"

#include <string_view>
#include <vector>

#include "base/assert.h"
#include "transport/crypto.h"
#include "transport/tcp/address.h"

namespace motley::transport {
namespace {

/// What stands in for the exporter value of TLS between two processes of one machine.
Digest local_exporter(const Digest& from_client, const Digest& from_server) {
  constexpr std::string_view kRole = "motley local";
  std::vector<std::byte> input;
  for (const char letter : kRole) input.push_back(static_cast<std::byte>(letter));
  for (const Digest* nonce : {&from_client, &from_server})
    for (const std::uint8_t byte : *nonce) input.push_back(static_cast<std::byte>(byte));
  return sha256(input);
}

}  // namespace

Core::Core(std::shared_ptr<Reactor> reactor, CoreHost& host, Socket socket, CoreSetup setup)
    : reactor_(std::move(reactor)),
      host_(host),
      socket_(std::move(socket)),
      close_timer_(socket_.get_executor()),
      unproven_timer_(socket_.get_executor()),
      setup_(std::move(setup)),
      reader_(reactor_->pool),
      proven_(setup_.proven) {
  peer_.address = setup_.address;
  peer_.same_machine = setup_.same_machine;
  if (setup_.tls != nullptr) tls_ = std::make_unique<TlsSession>(*setup_.tls, setup_.role, setup_.pin);
  if (setup_.same_machine || setup_.tls != nullptr) reader_.trust_bodies();
  if (!setup_.proven) reader_.restrict(setup_.unproven_bytes_max);
}

void Core::start(std::shared_ptr<Receiver> receiver) {
  MOTLEY_ASSERT(receiver != nullptr);
  if (reactor_->stopped) return;
  net::post(socket_.get_executor(), [self = shared_from_this(), receiver = std::move(receiver)]() mutable {
    MOTLEY_ASSERT(self->receiver_ == nullptr);
    if (self->state_ == State::closed) {
      if (self->closed_with_) receiver->on_closed(*std::exchange(self->closed_with_, std::nullopt));
      return;
    }
    self->receiver_ = std::move(receiver);
    if (self->state_ != State::open || self->reading_) return;
    self->reading_ = true;
    // The last flight of a TLS handshake may have brought the first frames along.
    if (self->tls_ != nullptr) {
      self->on_cipher();
    } else {
      self->read();
    }
  });
}

void Core::close() {
  {
    const std::lock_guard lock(mutex_);
    no_more_sends_ = true;
    if (closed_) return;
  }
  net::post(socket_.get_executor(), [self = shared_from_this()] { self->close_on_strand(); });
  set_reading(true);  // to the other side's end
}

void Core::abort(Error error) {
  {
    const std::lock_guard lock(mutex_);
    no_more_sends_ = true;
    if (closed_) return;
  }
  net::post(socket_.get_executor(), [self = shared_from_this(), error = std::move(error)] { self->fail(error); });
}

void Core::mark_proven() {
  if (proven_.exchange(true)) return;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
  }
  net::dispatch(socket_.get_executor(), [self = shared_from_this()] {
    if (self->state_ == State::closed) return;
    self->unproven_timer_.cancel();
    self->reader_.lift_restriction();
    self->host_.proven(self->id());
  });
}

void Core::limit_unproven_time(std::chrono::milliseconds time) {
  if (state_ == State::closed || proven_) return;
  unproven_timer_.expires_after(time);
  unproven_timer_.async_wait([self = shared_from_this(), time](const NetError& error) {
    if (error || self->proven_ || self->state_ == State::closed) return;
    self->fail({ErrorCode::refused,
                self->peer_.address + " did not prove itself within " + std::to_string(time.count()) + " ms", ""});
  });
}

void Core::close_on_strand() {
  if (state_ == State::handshaking) return fail(network_error("closed by this side"));
  if (state_ != State::open) return;
  state_ = State::flushing;
  arm(kCloseTime, "closed by this side before all was sent");
  if (!reading_) {
    reading_ = true;
    discard();
  }
  bool idle = false;
  {
    const std::lock_guard lock(mutex_);
    idle = !writing_;
    writing_ = true;
  }
  if (idle) write();
}

/// Everything is handed to the kernel. Closing now could destroy it: a reset goes out if anything arrives later. So say
/// that this is the end and read until the other side has said so too.
void Core::finish_sending() {
  MOTLEY_ASSERT(state_ == State::flushing);
  state_ = State::draining;
  NetError ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
  arm(kCloseTime, "closed by this side");
}

void Core::arm(std::chrono::milliseconds time, const char* what) {
  close_timer_.expires_after(time);
  close_timer_.async_wait([self = shared_from_this(), what](const NetError& error) {
    if (!error && self->state_ != State::closed) self->fail(self->network_error(what));
  });
}

void Core::fail(Error error) {
  if (state_ == State::closed) return;
  const bool in_handshake = state_ == State::handshaking;
  state_ = State::closed;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    no_more_sends_ = true;
    queue_.clear();
  }
  queued_bytes_ = 0;
  NetError ignored;
  close_timer_.cancel();
  unproven_timer_.cancel();
  const std::shared_ptr<Core> self = shared_from_this();
  host_.gone(id(), !proven_);
  socket_.close(ignored);  // after it was counted: whoever sees the end can rely on the count
  if (in_handshake && on_handshake_) {
    std::exchange(on_handshake_, nullptr)(std::move(error));
  } else if (receiver_ != nullptr) {
    std::exchange(receiver_, nullptr)->on_closed(std::move(error));
  } else {
    closed_with_ = std::move(error);
  }
}

Error Core::network_error(const std::string& what) const {
  return {ErrorCode::network, "the connection with " + peer_.address + " ended: " + what, ""};
}

void Core::handshake(std::function<void(Status)> on_done) {
  if (state_ == State::closed) return on_done(network_error("closed before the handshake"));
  MOTLEY_ASSERT(state_ == State::handshaking && !on_handshake_);
  on_handshake_ = std::move(on_done);
  if (setup_.same_machine) return exchange_nonces();
  if (tls_ == nullptr) return handshake_done({});
  input_.resize(kCipherBytes);
  handshake_step();
}

// There is no TLS that would make one local connection different from the next: without this, a proof that somebody was
// given under the same name could be shown to the coordinator later.
void Core::exchange_nonces() {
  random_bytes(own_nonce_);
  net::async_write(socket_, net::buffer(own_nonce_),
                   [self = shared_from_this()](const NetError& error, std::size_t /*count*/) {
                     if (self->state_ == State::closed || !error) return;
                     self->fail(self->network_error(reason_of(error)));
                   });
  net::async_read(socket_, net::buffer(their_nonce_),
                  [self = shared_from_this()](const NetError& error, std::size_t count) {
                    if (self->state_ == State::closed) return;
                    if (error) return self->fail(self->network_error(reason_of(error)));
                    if (!self->count_received(count)) return;
                    const bool client = self->setup_.role == TlsRole::client;
                    self->peer_.exporter = client ? local_exporter(self->own_nonce_, self->their_nonce_)
                                                  : local_exporter(self->their_nonce_, self->own_nonce_);
                    self->handshake_done({});
                  });
}

void Core::handshake_step() {
  const TlsSession::Step step = tls_->handshake();
  if (tls_->output().empty()) return handshake_flush(step);
  net::async_write(socket_, net::buffer(tls_->output()),
                   [self = shared_from_this(), step](const NetError& error, std::size_t /*count*/) {
                     if (self->state_ == State::closed) return;
                     // A failure of our own is the better story than that of its alert.
                     if (error && step != TlsSession::Step::failed) {
                       return self->fail(self->network_error("TLS handshake: " + reason_of(error)));
                     }
                     self->tls_->output().clear();
                     self->handshake_flush(step);
                   });
}

void Core::handshake_flush(TlsSession::Step step) {
  switch (step) {
    case TlsSession::Step::done:
      peer_.encrypted = true;
      peer_.spki = tls_->peer_spki();
      peer_.exporter = tls_->exporter();
      peer_.cipher = tls_->cipher();
      return handshake_done({});
    case TlsSession::Step::want_input:
      return handshake_read();
    case TlsSession::Step::failed:
      return fail(handshake_error());
  }
}

void Core::handshake_read() {
  socket_.async_read_some(
      net::buffer(input_.data(), read_limit(input_.size())),
      [self = shared_from_this()](const NetError& error, std::size_t count) {
        if (self->state_ == State::closed) return;
        if (error) {
          return self->fail({ErrorCode::network,
                             self->peer_.address + " ended the connection during the TLS handshake: " +
                                 (error == net::error::eof ? "end of file" : reason_of(error)),
                             "a side started with --plaintext cannot talk to one that encrypts"});
        }
        if (!self->count_received(count)) return;
        self->tls_->provide(std::span(self->input_.data(), count));
        self->handshake_step();
      });
}

void Core::handshake_done(Status status) {
  MOTLEY_ASSERT(status.ok());
  state_ = State::open;
  std::exchange(on_handshake_, nullptr)(std::move(status));
}

Error Core::handshake_error() const {
  if (tls_->wrong_pin()) {
    return {ErrorCode::refused, "the machine at " + peer_.address + " is not the coordinator this token was made for",
            "ask for a new token; if the address is right, somebody may be in between"};
  }
  if (tls_->not_tls()) {
    return {ErrorCode::protocol, "expected TLS 1.3 from " + peer_.address + ", found something else",
            "start both sides with --plaintext, or neither"};
  }
  return {ErrorCode::protocol, "no encrypted connection with " + peer_.address + ": " + tls_->failure(), ""};
}

}  // namespace motley::transport

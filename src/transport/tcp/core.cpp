#include "transport/tcp/core.h"

#include "base/assert.h"
#include "transport/tcp/address.h"

namespace motley::transport {

Core::Core(std::shared_ptr<Reactor> reactor, CoreHost& host, Socket socket, CoreSetup setup)
    : reactor_(std::move(reactor)),
      host_(host),
      socket_(std::move(socket)),
      not_inherited_(socket_.native_handle()),
      close_timer_(socket_.get_executor()),
      unproven_timer_(socket_.get_executor()),
      setup_(std::move(setup)),
      budget_(setup_.proven, setup_.unproven_bytes_max),
      tls_(setup_.tls != nullptr ? std::make_unique<TlsSession>(*setup_.tls, setup_.role, setup_.pin) : nullptr),
      incoming_({socket_, budget_, setup_.role, peer_, reactor_->pool}, *this),
      outgoing_(socket_, *this) {
  peer_.address = setup_.address;
  peer_.same_machine = setup_.same_machine;
  if (setup_.same_machine || tls_ != nullptr) incoming_.reader().trust_bodies();
  if (!setup_.proven) incoming_.reader().restrict(setup_.unproven_bytes_max);
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
    if (self->state_ != State::open || self->incoming_.begun()) return;
    self->incoming_.begin();
  });
}

void Core::close() {
  outgoing_.take_no_more();
  if (closed_) return;
  net::post(socket_.get_executor(), [self = shared_from_this()] { self->close_on_strand(); });
  set_reading(true);  // to the other side's end
}

void Core::abort(Error error) {
  outgoing_.take_no_more();
  if (closed_) return;
  net::post(socket_.get_executor(), [self = shared_from_this(), error = std::move(error)] { self->fail(error); });
}

void Core::mark_proven() {
  if (!budget_.prove() || closed_) return;
  net::dispatch(socket_.get_executor(), [self = shared_from_this()] {
    if (self->state_ == State::closed) return;
    self->unproven_timer_.cancel();
    self->incoming_.reader().lift_restriction();
    self->host_.proven(self->id());
  });
}

void Core::limit_unproven_time(std::chrono::milliseconds time) {
  if (state_ == State::closed || budget_.proven()) return;
  unproven_timer_.expires_after(time);
  unproven_timer_.async_wait([self = shared_from_this(), time](const NetError& error) {
    if (error || self->budget_.proven() || self->state_ == State::closed) return;
    self->fail({ErrorCode::refused,
                self->peer_.address + " did not prove itself within " + std::to_string(time.count()) + " ms", ""});
  });
}

void Core::close_on_strand() {
  if (state_ == State::handshaking) return fail(network_error("closed by this side"));
  if (state_ != State::open) return;
  state_ = State::flushing;
  arm(kCloseTime, "closed by this side before all was sent");
  incoming_.discard();
  outgoing_.finish();
}

void Core::set_reading(bool on) {
  incoming_.hold(!on);
  if (on) incoming_.resume();
}

void Core::on_frame(wire::Frame frame) {
  // Kept by hand: the receiver may drop its last handle on itself or on us in the call.
  const std::shared_ptr<Receiver> receiver = receiver_;
  if (receiver != nullptr) receiver->on_frame(std::move(frame));
}

/// Everything is handed to the kernel. Closing now could destroy it: a reset goes out if anything arrives later. So say
/// that this is the end and read until the other side has said so too.
void Core::on_all_sent() {
  MOTLEY_ASSERT(state_ == State::flushing);
  state_ = State::draining;
  NetError ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
  arm(kCloseTime, "closed by this side");
}

/// The other side may have said why before it left: read on to the end, which is near.
void Core::on_not_taken(const std::string& why) {
  if (state_ != State::open) return fail(network_error("closed by this side"));
  if (!incoming_.begun()) return fail(network_error(why));
  arm(kCloseTime, "the other side takes no more");
}

void Core::arm(std::chrono::milliseconds time, const char* what) {
  close_timer_.expires_after(time);
  close_timer_.async_wait([self = shared_from_this(), what](const NetError& error) {
    if (!error && self->state_ != State::closed) self->fail(self->network_error(what));
  });
}

void Core::fail(Error error) {
  if (state_ == State::closed) return;
  const std::shared_ptr<Core> self = shared_from_this();
  const bool in_handshake = state_ == State::handshaking;
  state_ = State::closed;
  closed_ = true;
  incoming_.stop();
  outgoing_.stop();
  NetError ignored;
  close_timer_.cancel();
  unproven_timer_.cancel();
  if (handshake_) handshake_->cancel();
  host_.gone(id(), !budget_.proven());
  // After it was counted: whoever sees the end can rely on the count.
  not_inherited_.release([&] { socket_.close(ignored); });
  if (in_handshake && on_handshake_) {
    std::exchange(on_handshake_, nullptr)(std::move(error));
  } else if (receiver_ != nullptr) {
    std::exchange(receiver_, nullptr)->on_closed(std::move(error));
  } else {
    closed_with_ = std::move(error);
  }
}

Error Core::network_error(const std::string& what) const { return connection_ended(peer_.address, what); }

void Core::hear(Handshake::Judge judge, std::function<void(Knocks::Who)> on_heard) {
  MOTLEY_ASSERT(tls_ != nullptr);
  if (state_ != State::handshaking) return;
  greeting().hear(shared_from_this(), std::move(judge),
                  [this, on_heard = std::move(on_heard)](const Result<Knocks::Who>& who) {
                    if (!who) return fail(who.error());
                    on_heard(*who);
                  });
}

Handshake& Core::greeting() {
  if (handshake_) return *handshake_;
  return handshake_.emplace(Handshake::Over{socket_, budget_, tls_.get(), setup_.role, incoming_.input()}, peer_);
}

void Core::handshake(std::function<void(Status)> on_done) {
  if (state_ == State::closed) return on_done(network_error("closed before the handshake"));
  MOTLEY_ASSERT(state_ == State::handshaking && !on_handshake_);
  on_handshake_ = std::move(on_done);
  if (!setup_.same_machine && tls_ == nullptr) return on_handshaken({});
  if (tls_ != nullptr && setup_.role == TlsRole::client && setup_.knock) {
    const Knock knock = make_knock(*setup_.knock);
    const std::span<const std::byte> bytes = std::as_bytes(std::span(knock));
    tls_->output().assign(bytes.begin(), bytes.end());
  }
  greeting().start(shared_from_this(), [this](const Status& status) { on_handshaken(status); });
}

void Core::on_handshaken(const Status& status) {
  if (!status) return fail(status.error());
  state_ = State::open;
  if (tls_ != nullptr) {
    incoming_.decrypt(*tls_);
    outgoing_.encrypt(*tls_);
  }
  std::exchange(on_handshake_, nullptr)({});
}

}  // namespace motley::transport

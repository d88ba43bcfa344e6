// Reading: from the socket to frames.

#include <algorithm>
#include <array>

#include "base/assert.h"
#include "transport/tcp/address.h"
#include "transport/tcp/core.h"

namespace motley::transport {

namespace {

/// A TLS handshake or alert record; no frame begins like that.
bool looks_like_tls(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && (bytes[0] == std::byte{0x16} || bytes[0] == std::byte{0x15}) && bytes[1] == std::byte{3};
}

}  // namespace

/// Answers in the other side's language, so that it can say what is wrong.
void Core::refuse_tls() {
  NetError ignored;
  if (setup_.role == TlsRole::server) socket_.write_some(net::buffer(kProtocolVersionAlert), ignored);
  fail({ErrorCode::protocol, peer_.address + " speaks TLS, this side was told not to",
        "start both sides with --plaintext, or neither"});
}

void Core::read() {
  if (state_ == State::closed) return;
  if (state_ != State::open) return discard();
  if (held_) {
    read_waits_ = true;
    return;
  }
  if (tls_ != nullptr) return read_tls();
  read_plain();
}

void Core::set_reading(bool on) {
  held_ = !on;
  if (!on) return;
  net::post(socket_.get_executor(), [self = shared_from_this()] {
    if (!self->read_waits_ || self->held_) return;
    self->read_waits_ = false;
    self->read();
  });
}

bool Core::count_received(std::size_t count) {
  const Status within = budget_.count(count, peer_.address);
  if (!within) fail(within.error());
  return within.ok();
}

// A large body is read straight into its frame, with just the next header behind it so that the body after that is not
// torn either; otherwise one read takes as many small frames as there are.
void Core::read_plain() {
  if (input_.empty()) input_.resize(kReadBytes);
  const std::span<std::byte> gap = reader_.gap();
  const bool large = gap.size() >= kDirectBytes;
  const std::size_t limit = budget_.at_most(gap.size() + (large ? wire::kHeaderBytes : input_.size()));
  const std::size_t direct = std::min(gap.size(), limit);
  const std::array<net::mutable_buffer, 2> buffers{net::buffer(gap.data(), direct),
                                                   net::buffer(input_.data(), limit - direct)};
  socket_.async_read_some(buffers, [self = shared_from_this(), direct](const NetError& error, std::size_t count) {
    if (self->state_ == State::closed) return;
    if (error) return self->on_read_error(error);
    if (self->state_ != State::open) return self->discard();
    if (!self->count_received(count)) return;
    self->on_plain(count, direct);
  });
}

void Core::on_plain(std::size_t count, std::size_t direct) {
  const std::size_t in_place = std::min(count, direct);
  if (in_place > 0 && !on_filled(in_place)) return;
  if (!on_bytes(std::span(input_.data(), count - in_place))) return;
  read();
}

void Core::read_tls() {
  socket_.async_read_some(net::buffer(input_.data(), budget_.at_most(input_.size())),
                          [self = shared_from_this()](const NetError& error, std::size_t count) {
                            if (self->state_ == State::closed) return;
                            if (error) return self->on_read_error(error);
                            if (self->state_ != State::open) return self->discard();
                            if (!self->count_received(count)) return;
                            self->tls_->provide(std::span(self->input_.data(), count));
                            self->on_cipher();
                          });
}

void Core::on_cipher() {
  if (plain_.empty()) plain_.resize(kRecordBytes);
  while (true) {
    const std::span<std::byte> gap = reader_.gap();
    const bool in_place = !gap.empty();
    const TlsSession::Read got = tls_->read(in_place ? gap : std::span(plain_));
    if (got.state == TlsSession::Read::State::want_input) return read();
    if (got.state == TlsSession::Read::State::end) return on_end();
    if (got.state == TlsSession::Read::State::failed) {
      return fail({ErrorCode::protocol, "bytes from " + peer_.address + " make no sense: " + tls_->failure(), ""});
    }
    if (!(in_place ? on_filled(got.count) : on_bytes(std::span(plain_.data(), got.count)))) return;
    if (state_ != State::open) return read();
  }
}

/// False when the connection was closed on the way.
bool Core::on_bytes(std::span<const std::byte> bytes) {
  if (tls_ == nullptr && budget_.received() == bytes.size() && looks_like_tls(bytes)) {
    refuse_tls();
    return false;
  }
  while (!bytes.empty() && state_ == State::open) {
    if (Status status = reader_.feed(bytes); !status) {
      Error error = status.error();
      error.message = "bytes from " + peer_.address + " make no sense: " + error.message;
      fail(std::move(error));
      return false;
    }
    if (!deliver()) return false;
  }
  return state_ != State::closed;
}

bool Core::on_filled(std::size_t count) {
  if (Status status = reader_.filled(count); !status) {
    fail(status.error());
    return false;
  }
  return deliver();
}

bool Core::deliver() {
  if (std::optional<wire::Frame> frame = reader_.take()) {
    received_bytes_ += wire::kHeaderBytes + frame->body.size();
    // Kept by hand: the receiver may drop its last handle on itself or on us in the call.
    const std::shared_ptr<Receiver> receiver = receiver_;
    if (receiver != nullptr && state_ == State::open) receiver->on_frame(std::move(*frame));
  }
  return state_ != State::closed;
}

/// After close(): reads to the end without looking, so that the kernel has no reason to send a reset.
void Core::discard() {
  if (state_ == State::closed) return;
  if (input_.empty()) input_.resize(kReadBytes);
  socket_.async_read_some(net::buffer(input_),
                          [self = shared_from_this()](const NetError& error, std::size_t /*count*/) {
                            if (self->state_ == State::closed) return;
                            if (error) return self->fail(self->network_error("closed by this side"));
                            self->discard();
                          });
}

void Core::on_read_error(const NetError& error) {
  if (state_ != State::open) return fail(network_error("closed by this side"));
  if (error != net::error::eof) return fail(network_error(reason_of(error)));
  // Over TLS the end is announced; without that somebody on the way may have cut it short.
  if (tls_ != nullptr) return fail(network_error("cut off without a farewell"));
  on_end();
}

void Core::on_end() {
  fail(network_error(reader_.between_frames() ? "closed by the other side" : "closed in the middle of a frame"));
}

}  // namespace motley::transport

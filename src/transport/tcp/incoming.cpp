#include "transport/tcp/incoming.h"

#include <algorithm>
#include <array>

#include "base/assert.h"
#include "transport/tcp/address.h"

namespace motley::transport {

namespace {

/// A TLS handshake or alert record; no frame begins like that.
bool looks_like_tls(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && (bytes[0] == std::byte{0x16} || bytes[0] == std::byte{0x15}) && bytes[1] == std::byte{3};
}

Error no_sense(const PeerIdentity& peer, const std::string& why) {
  return {ErrorCode::protocol, "bytes from " + peer.address + " make no sense: " + why, ""};
}

}  // namespace

void Incoming::begin() {
  MOTLEY_ASSERT(mode_ == Mode::idle);
  mode_ = Mode::frames;
  // The last flight of a TLS handshake may have brought the first frames along.
  if (over_.tls != nullptr) return on_cipher();
  read();
}

void Incoming::discard() {
  const bool idle = mode_ == Mode::idle;
  mode_ = Mode::discarding;
  if (idle) read_away();
}

void Incoming::resume() {
  net::post(over_.socket.get_executor(), [this, keep = owner_.keep()] {
    if (!waits_ || held_) return;
    waits_ = false;
    read();
  });
}

/// Answers in the other side's language, so that it can say what is wrong.
void Incoming::refuse_tls() {
  NetError ignored;
  if (over_.role == TlsRole::server) over_.socket.write_some(net::buffer(kProtocolVersionAlert), ignored);
  owner_.on_no_more({ErrorCode::protocol, over_.peer.address + " speaks TLS, this side was told not to",
                     "start both sides with --plaintext, or neither"});
}

void Incoming::read() {
  if (mode_ == Mode::stopped) return;
  if (mode_ == Mode::discarding) return read_away();
  if (held_) {
    waits_ = true;
    return;
  }
  if (over_.tls != nullptr) return read_tls();
  read_plain();
}

bool Incoming::goes_on(const NetError& error, std::size_t count) {
  if (mode_ == Mode::stopped) return false;
  if (error) {
    on_read_error(error);
    return false;
  }
  if (mode_ == Mode::discarding) {
    read_away();
    return false;
  }
  const Status within = over_.budget.count(count, over_.peer.address);
  if (!within) owner_.on_no_more(within.error());
  return within.ok();
}

// A large body is read straight into its frame, with just the next header behind it so that the body after that is not
// torn either; otherwise one read takes as many small frames as there are.
void Incoming::read_plain() {
  if (input_.empty()) input_.resize(kReadBytes);
  const std::span<std::byte> gap = reader_.gap();
  const bool large = gap.size() >= kDirectBytes;
  const std::size_t limit = over_.budget.at_most(gap.size() + (large ? wire::kHeaderBytes : input_.size()));
  const std::size_t direct = std::min(gap.size(), limit);
  const std::array<net::mutable_buffer, 2> buffers{net::buffer(gap.data(), direct),
                                                   net::buffer(input_.data(), limit - direct)};
  over_.socket.async_read_some(buffers, [this, keep = owner_.keep(), direct](const NetError& error, std::size_t count) {
    if (goes_on(error, count)) on_plain(count, direct);
  });
}

void Incoming::on_plain(std::size_t count, std::size_t direct) {
  const std::size_t in_place = std::min(count, direct);
  if (in_place > 0 && !on_filled(in_place)) return;
  if (!on_bytes(std::span(input_.data(), count - in_place))) return;
  read();
}

void Incoming::read_tls() {
  over_.socket.async_read_some(net::buffer(input_.data(), over_.budget.at_most(input_.size())),
                               [this, keep = owner_.keep()](const NetError& error, std::size_t count) {
                                 if (!goes_on(error, count)) return;
                                 over_.tls->provide(std::span(input_.data(), count));
                                 on_cipher();
                               });
}

void Incoming::on_cipher() {
  if (plain_.empty()) plain_.resize(kRecordBytes);
  while (true) {
    const std::span<std::byte> gap = reader_.gap();
    const bool in_place = !gap.empty();
    const TlsSession::Read got = over_.tls->read(in_place ? gap : std::span(plain_));
    if (got.state == TlsSession::Read::State::want_input) return read();
    if (got.state == TlsSession::Read::State::end) return on_end();
    if (got.state == TlsSession::Read::State::failed) {
      return owner_.on_no_more(no_sense(over_.peer, over_.tls->failure()));
    }
    if (!(in_place ? on_filled(got.count) : on_bytes(std::span(plain_.data(), got.count)))) return;
    if (mode_ != Mode::frames) return read();
  }
}

/// False when the connection was closed on the way.
bool Incoming::on_bytes(std::span<const std::byte> bytes) {
  if (over_.tls == nullptr && over_.budget.received() == bytes.size() && looks_like_tls(bytes)) {
    refuse_tls();
    return false;
  }
  while (!bytes.empty() && mode_ == Mode::frames) {
    if (Status status = reader_.feed(bytes); !status) {
      Error error = no_sense(over_.peer, status.error().message);
      error.code = status.error().code;
      error.hint = status.error().hint;
      owner_.on_no_more(std::move(error));
      return false;
    }
    if (!deliver()) return false;
  }
  return mode_ != Mode::stopped;
}

bool Incoming::on_filled(std::size_t count) {
  if (Status status = reader_.filled(count); !status) {
    owner_.on_no_more(status.error());
    return false;
  }
  return deliver();
}

bool Incoming::deliver() {
  if (std::optional<wire::Frame> frame = reader_.take()) {
    bytes_ += wire::kHeaderBytes + frame->body.size();
    if (mode_ == Mode::frames) owner_.on_frame(std::move(*frame));
  }
  return mode_ != Mode::stopped;
}

void Incoming::read_away() {
  if (mode_ == Mode::stopped) return;
  if (input_.empty()) input_.resize(kReadBytes);
  over_.socket.async_read_some(net::buffer(input_),
                               [this, keep = owner_.keep()](const NetError& error, std::size_t /*count*/) {
                                 if (mode_ == Mode::stopped) return;
                                 if (error) return on_read_error(error);
                                 read_away();
                               });
}

void Incoming::on_read_error(const NetError& error) {
  const auto ended = [this](const std::string& why) { owner_.on_no_more(connection_ended(over_.peer.address, why)); };
  if (mode_ != Mode::frames) return ended("closed by this side");
  if (error != net::error::eof) return ended(reason_of(error));
  // Over TLS the end is announced; without that somebody on the way may have cut it short.
  if (over_.tls != nullptr) return ended("cut off without a farewell");
  on_end();
}

void Incoming::on_end() {
  owner_.on_no_more(connection_ended(
      over_.peer.address, reader_.between_frames() ? "closed by the other side" : "closed in the middle of a frame"));
}

}  // namespace motley::transport

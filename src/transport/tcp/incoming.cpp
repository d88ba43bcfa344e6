#include "transport/tcp/incoming.h"

#include <algorithm>
#include <array>
#include <cstring>

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

void Incoming::decrypt(TlsSession& tls) {
  MOTLEY_ASSERT(mode_ == Mode::idle && tls_ == nullptr && !input_.empty());
  tls_ = &tls;
  plain_.resize(kRecordBytes);
}

void Incoming::begin() {
  MOTLEY_ASSERT(mode_ == Mode::idle);
  mode_ = Mode::frames;
  // The last flight of a TLS handshake may have brought the first frames along.
  if (tls_ != nullptr) return on_cipher();
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
  if (tls_ != nullptr) return read_tls();
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

// In the middle of a large body nobody has to be woken for every few packets. What the kernel cannot hold, and an end,
// it reports all the same. (A local socket knows no such mark.)
void Incoming::expect(std::size_t bytes) {
#ifdef __linux__
  const std::size_t at_once = bytes >= kAtOnceBytes && !over_.peer.same_machine ? kAtOnceBytes : 1;
  if (at_once == at_once_) return;
  at_once_ = at_once;
  const int mark = static_cast<int>(at_once);
  ::setsockopt(over_.socket.native_handle(), SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof mark);
#else
  static_cast<void>(bytes);
#endif
}

// A large body is read straight into its frame, with just the next header behind it so that the body after that is not
// torn either; otherwise one read takes as many small frames as there are.
void Incoming::read_plain() {
  if (input_.empty()) input_.resize(kReadBytes);
  const std::span<std::byte> gap = reader_.gap();
  const bool large = gap.size() >= kDirectBytes;
  const std::size_t limit = over_.budget.at_most(gap.size() + (large ? wire::kHeaderBytes : input_.size()));
  const std::size_t direct = std::min(gap.size(), limit);
  expect(gap.size());
  const std::array<net::mutable_buffer, 2> buffers{net::buffer(gap.data(), direct),
                                                   net::buffer(input_.data(), limit - direct)};
  over_.socket.async_read_some(buffers, [this, keep = owner_.keep(), direct](const NetError& error, std::size_t count) {
    if (!goes_on(error, count)) return;
    const std::size_t in_place = std::min(count, direct);
    if (on_read(in_place, std::span(input_).first(count - in_place))) read();
  });
}

void Incoming::read_tls() {
  expect(reader_.gap().size());
  over_.socket.async_read_some(net::buffer(input_.data(), over_.budget.at_most(input_.size())),
                               [this, keep = owner_.keep()](const NetError& error, std::size_t count) {
                                 if (!goes_on(error, count)) return;
                                 tls_->provide(std::span(input_).first(count));
                                 on_cipher();
                               });
}

void Incoming::on_cipher() {
  using What = TlsSession::Opened::What;
  while (mode_ == Mode::frames) {
    const std::span<std::byte> gap = reader_.gap();
    const TlsSession::Opened opened = tls_->open(gap.empty() ? std::span(plain_) : gap);
    if (opened.what == What::want_input) break;
    if (opened.what == What::end) return on_end();
    if (opened.what == What::failed) return owner_.on_no_more(no_sense(over_.peer, tls_->failure()));
    const std::size_t in_place = gap.empty() ? 0 : opened.count;
    if (!on_read(in_place, std::span(plain_).first(opened.count - in_place))) return;
  }
  read();
}

/// So many bytes are in the reader's gap, the others follow. False when the connection was closed on the way.
bool Incoming::on_read(std::size_t in_place, std::span<const std::byte> behind) {
  bytes_ += in_place + behind.size();
  return (in_place == 0 || on_filled(in_place)) && on_bytes(behind);
}

/// False when the connection was closed on the way.
bool Incoming::on_bytes(std::span<const std::byte> bytes) {
  if (tls_ == nullptr && over_.budget.received() == bytes.size() && looks_like_tls(bytes)) {
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
  std::optional<wire::Frame> frame = reader_.take();
  if (frame && mode_ == Mode::frames) owner_.on_frame(std::move(*frame));
  return mode_ != Mode::stopped;
}

void Incoming::read_away() {
  if (mode_ == Mode::stopped) return;
  expect(0);
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
  if (tls_ != nullptr) return ended("cut off without a farewell");
  on_end();
}

void Incoming::on_end() {
  owner_.on_no_more(connection_ended(
      over_.peer.address, reader_.between_frames() ? "closed by the other side" : "closed in the middle of a frame"));
}

}  // namespace motley::transport

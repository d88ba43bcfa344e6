#include "transport/tcp/handshake.h"

#include <string_view>
#include <utility>
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

Error ended(const PeerIdentity& peer, const std::string& why) { return connection_ended(peer.address, why); }

}  // namespace

void Handshake::start(std::shared_ptr<const void> keep, Done on_done) {
  MOTLEY_ASSERT(!on_done_);
  keep_ = std::move(keep);
  on_done_ = std::move(on_done);
  if (over_.tls == nullptr) return exchange_nonces();
  over_.input.resize(kCipherBytes);
  if (heard_ > knock_bytes_) over_.tls->provide(std::span(over_.input).first(heard_).subspan(knock_bytes_));
  step();
}

void Handshake::hear(std::shared_ptr<const void> keep, Judge judge, Heard on_heard) {
  judge_ = std::move(judge);
  on_heard_ = std::move(on_heard);
  hear_more(std::move(keep));
}

/// Memory for what comes is taken when it has come: who is silent costs a socket.
void Handshake::hear_more(std::shared_ptr<const void> keep) {
  over_.socket.async_wait(Socket::wait_read, [this, keep = std::move(keep)](const NetError& error) {
    if (!on_heard_) return;
    if (error) return std::exchange(on_heard_, nullptr)(ended(peer_, reason_of(error)));
    hear_them(keep);
  });
}

void Handshake::hear_them(const std::shared_ptr<const void>& keep) {
  over_.input.resize(kCipherBytes);
  const std::span<std::byte> rest = std::span(over_.input).subspan(heard_);
  over_.socket.async_read_some(net::buffer(rest.data(), over_.budget.at_most(rest.size())),
                               [this, keep](const NetError& error, std::size_t count) {
                                 if (!on_heard_) return;
                                 if (error) return std::exchange(on_heard_, nullptr)(ended(peer_, reason_of(error)));
                                 on_heard(count, keep);
                               });
}

void Handshake::on_heard(std::size_t count, const std::shared_ptr<const void>& keep) {
  if (const Status within = over_.budget.count(count, peer_.address); !within)
    return std::exchange(on_heard_, nullptr)(within.error());
  heard_ += count;
  const Knocks::First first = judge_(std::span(over_.input).first(heard_));
  if (first.who == Knocks::Who::unclear) return hear_more(keep);
  knock_bytes_ = first.bytes;
  std::exchange(on_heard_, nullptr)(first.who);
}

void Handshake::cancel() {
  on_done_ = nullptr;
  on_heard_ = nullptr;
  keep_ = nullptr;
}

void Handshake::finish(Status status) {
  if (!on_done_) return;
  const std::shared_ptr<const void> keep = std::exchange(keep_, nullptr);
  std::exchange(on_done_, nullptr)(std::move(status));
}

bool Handshake::goes_on(std::size_t received) {
  if (!on_done_) return false;
  const Status within = over_.budget.count(received, peer_.address);
  if (!within) finish(within.error());
  return within.ok();
}

// There is no TLS that would make one local connection different from the next: without this, a proof that somebody was
// given under the same name could be shown to the coordinator later.
void Handshake::exchange_nonces() {
  random_bytes(own_nonce_);
  net::async_write(over_.socket, net::buffer(own_nonce_),
                   [this, keep = keep_](const NetError& error, std::size_t /*count*/) {
                     if (error) finish(ended(peer_, reason_of(error)));
                   });
  net::async_read(over_.socket, net::buffer(their_nonce_),
                  [this, keep = keep_](const NetError& error, std::size_t count) {
                    if (error) return finish(ended(peer_, reason_of(error)));
                    if (!goes_on(count)) return;
                    peer_.exporter = over_.role == TlsRole::client ? local_exporter(own_nonce_, their_nonce_)
                                                                   : local_exporter(their_nonce_, own_nonce_);
                    finish({});
                  });
}

void Handshake::step() {
  const TlsSession::Step step = over_.tls->handshake();
  if (over_.tls->output().empty()) return flushed(step);
  net::async_write(over_.socket, net::buffer(over_.tls->output()),
                   [this, keep = keep_, step](const NetError& error, std::size_t /*count*/) {
                     if (!on_done_) return;
                     // A failure of our own is the better story than that of its alert.
                     if (error && step != TlsSession::Step::failed)
                       return finish(ended(peer_, "TLS handshake: " + reason_of(error)));
                     over_.tls->output().clear();
                     flushed(step);
                   });
}

void Handshake::flushed(TlsSession::Step step) {
  switch (step) {
    case TlsSession::Step::done:
      peer_.encrypted = true;
      peer_.spki = over_.tls->peer_spki();
      peer_.exporter = over_.tls->exporter();
      peer_.cipher = over_.tls->cipher();
      return finish({});
    case TlsSession::Step::want_input:
      return read();
    case TlsSession::Step::failed:
      return finish(tls_error());
  }
}

void Handshake::read() {
  over_.socket.async_read_some(
      net::buffer(over_.input.data(), over_.budget.at_most(over_.input.size())),
      [this, keep = keep_](const NetError& error, std::size_t count) {
        if (error) {
          return finish(Error{ErrorCode::network,
                              peer_.address + " ended the connection during the TLS handshake: " +
                                  (error == net::error::eof ? "end of file" : reason_of(error)),
                              "a side started with --plaintext cannot talk to one that encrypts"});
        }
        if (!goes_on(count)) return;
        over_.tls->provide(std::span(over_.input).first(count));
        step();
      });
}

Error Handshake::tls_error() const {
  if (over_.tls->wrong_pin()) {
    return {ErrorCode::refused, "the machine at " + peer_.address + " is not the coordinator this token was made for",
            "ask for a new token; if the address is right, somebody may be in between"};
  }
  if (over_.tls->not_tls()) {
    return {ErrorCode::protocol, "expected TLS 1.3 from " + peer_.address + ", found something else",
            "start both sides with --plaintext, or neither"};
  }
  return {ErrorCode::protocol, "no encrypted connection with " + peer_.address + ": " + over_.tls->failure(), ""};
}

}  // namespace motley::transport

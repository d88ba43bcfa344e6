#pragma once
// What comes before the first frame: a TLS handshake, or an exchange of two nonces between processes of one machine.
// Private to tcp/. On the strand of the socket.

#include <functional>
#include <memory>
#include <span>

#include "transport/connection.h"
#include "transport/tcp/net.h"
#include "transport/tcp/read_budget.h"
#include "transport/tcp/tls.h"

namespace motley::transport {

class Handshake {
 public:
  using Done = std::function<void(Status)>;

  struct Over {
    Socket& socket;
    ReadBudget& budget;
    TlsSession* tls = nullptr;  // null: between processes of one machine
    TlsRole role = TlsRole::client;
    std::span<std::byte> input;  // ciphertext, of which the last may belong to the first frames
  };

  /// What is learned goes into `peer`. REQUIRES all outlive this.
  Handshake(Over over, PeerIdentity& peer) : over_(over), peer_(peer) {}
  Handshake(const Handshake&) = delete;
  Handshake& operator=(const Handshake&) = delete;

  /// Calls back once, unless cancelled. `keep`, the owner of this, is kept while anything is under way.
  void start(std::shared_ptr<const void> keep, Done on_done);
  void cancel();

 private:
  void exchange_nonces();
  void step();
  void flushed(TlsSession::Step step);
  void read();
  void finish(Status status);
  /// False: it was cancelled, or too much came.
  bool goes_on(std::size_t received);
  [[nodiscard]] Error tls_error() const;

  Over over_;
  PeerIdentity& peer_;
  std::shared_ptr<const void> keep_;
  Done on_done_;
  Digest own_nonce_{}, their_nonce_{};  // of a local socket
};

}  // namespace motley::transport

#pragma once
// What comes before the first frame: a TLS handshake, or an exchange of two nonces between processes of one machine.
// Private to tcp/. On the strand of the socket.

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "transport/connection.h"
#include "transport/tcp/knock.h"
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
    std::vector<std::byte>& input;  // ciphertext, of which the last may belong to the first frames
  };

  /// What is learned goes into `peer`. REQUIRES all outlive this, but `tls`, which is of no use to it after it called
  /// back.
  Handshake(Over over, PeerIdentity& peer) : over_(over), peer_(peer) {}
  Handshake(const Handshake&) = delete;
  Handshake& operator=(const Handshake&) = delete;

  /// What the first bytes that came are worth; asked again when more have come.
  using Judge = std::function<Knocks::First(std::span<const std::byte>)>;
  using Heard = std::function<void(Result<Knocks::Who>)>;
  /// Before start(), on the side that was connected to, over TLS. Calls back once, unless cancelled.
  void hear(std::shared_ptr<const void> keep, Judge judge, Heard on_heard);

  /// Calls back once, unless cancelled. `keep`, the owner of this, is kept while anything is under way.
  void start(std::shared_ptr<const void> keep, Done on_done);
  void cancel();

 private:
  static constexpr std::size_t kCipherBytes = 128 << 10;  // one read of records

  void hear_more(std::shared_ptr<const void> keep);
  void hear_them(const std::shared_ptr<const void>& keep);
  void on_heard(std::size_t count, const std::shared_ptr<const void>& keep);
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
  Judge judge_;
  Heard on_heard_;
  std::size_t heard_ = 0;               // bytes at the front of `input`
  std::size_t knock_bytes_ = 0;         // of them
  Digest own_nonce_{}, their_nonce_{};  // of a local socket
};

}  // namespace motley::transport

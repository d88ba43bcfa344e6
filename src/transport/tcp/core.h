#pragma once
// The life of one connection, plain or TLS: greeting, frames in and out, end. Private to tcp/.
// send(), close(), mark_proven(), set_reading(), start() and the getters may be called from any thread; all else runs
// on the strand of the socket. Life: handshaking -> open -> flushing (close() was called) -> draining (all is sent) ->
// closed.

#include <atomic>
#include <functional>
#include <memory>
#include <optional>

#include "transport/connection.h"
#include "transport/tcp/handshake.h"
#include "transport/tcp/incoming.h"
#include "transport/tcp/net.h"
#include "transport/tcp/not_inherited.h"
#include "transport/tcp/outgoing.h"
#include "transport/tcp/read_budget.h"
#include "transport/tcp/tls.h"

namespace motley::transport {

/// What a connection reports to whoever keeps the count of them.
class CoreHost {
 public:
  virtual ~CoreHost() = default;
  virtual void proven(std::uint64_t id) = 0;
  /// Last thing of a connection; `dropped` when it had not been proven.
  virtual void gone(std::uint64_t id, bool dropped) = 0;
};

struct CoreSetup {
  std::uint64_t id = 0;
  std::shared_ptr<const TlsContext> tls;  // null: plain
  TlsRole role = TlsRole::client;
  std::string address;  // of the peer, for people
  bool same_machine = false;
  std::optional<Digest> pin;
  std::optional<Digest> knock;  // of the side that connects
  bool proven = true;
  std::size_t unproven_bytes_max = 0;
};

class Core final : public std::enable_shared_from_this<Core>, private Incoming::Owner, private Outgoing::Owner {
 public:
  Core(std::shared_ptr<Reactor> reactor, CoreHost& host, Socket socket, CoreSetup setup);
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  // Any thread.
  void start(std::shared_ptr<Receiver> receiver);
  void send(wire::Frame frame, Priority priority) { outgoing_.send(std::move(frame), priority); }
  void close();
  /// Closes without flushing.
  void abort(Error error);
  void mark_proven();
  void set_reading(bool on);
  [[nodiscard]] std::size_t queued_bytes() const { return outgoing_.queued_bytes(); }
  [[nodiscard]] Traffic traffic() const { return {outgoing_.bytes(), incoming_.bytes()}; }
  [[nodiscard]] const PeerIdentity& peer() const { return peer_; }
  [[nodiscard]] std::uint64_t id() const { return setup_.id; }
  [[nodiscard]] Socket::executor_type executor() { return socket_.get_executor(); }

  // On the strand.
  /// On the side that was connected to, over TLS: waits for the first bytes, and says whose they are. Nothing is said
  /// of a connection that ends before.
  void hear(Handshake::Judge judge, std::function<void(Knocks::Who)> on_heard);
  /// Calls back once, at once for a plain connection of the network. The connection is open after success, closed after
  /// failure.
  void handshake(std::function<void(Status)> on_done);
  /// Closes with `refused` unless mark_proven() comes first.
  void limit_unproven_time(std::chrono::milliseconds time);

 private:
  enum class State : std::uint8_t { handshaking, open, flushing, draining, closed };
  static constexpr std::chrono::seconds kCloseTime{1};  // to flush, and again to drain

  std::shared_ptr<const void> keep() override { return shared_from_this(); }
  void on_frame(wire::Frame frame) override;
  void on_no_more(Error error) override { fail(std::move(error)); }
  void on_all_sent() override;
  void on_not_taken(const std::string& why) override;

  void fail(Error error);
  void close_on_strand();
  void arm(std::chrono::milliseconds time, const char* what);
  Handshake& greeting();
  void on_handshaken(const Status& status);
  [[nodiscard]] Error network_error(const std::string& what) const;

  std::shared_ptr<Reactor> reactor_;
  CoreHost& host_;
  Socket socket_;
  NotInherited not_inherited_;
  net::steady_timer close_timer_;
  net::steady_timer unproven_timer_;
  CoreSetup setup_;
  PeerIdentity peer_;
  ReadBudget budget_;
  std::unique_ptr<TlsSession> tls_;
  Incoming incoming_;
  Outgoing outgoing_;
  std::function<void(Status)> on_handshake_;
  std::optional<Handshake> handshake_;
  State state_ = State::handshaking;
  std::shared_ptr<Receiver> receiver_;
  std::optional<Error> closed_with_;  // set when closed before start()
  std::atomic<bool> closed_{false};   // what state_ says, for any thread
};

}  // namespace motley::transport

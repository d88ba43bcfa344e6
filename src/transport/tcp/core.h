#pragma once
// One connection, plain or TLS: reads frames, writes queues, closes. Private to tcp/.
// send(), close(), mark_proven(), set_reading(), start() and the getters may be called from any thread; all else runs
// on the strand of the socket. Life: handshaking -> open -> flushing (close() was called) -> draining (all is sent) ->
// closed.

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "transport/connection.h"
#include "transport/tcp/frame_reader.h"
#include "transport/tcp/handshake.h"
#include "transport/tcp/net.h"
#include "transport/tcp/read_budget.h"
#include "transport/tcp/send_queue.h"
#include "transport/tcp/tls.h"

namespace motley::transport {

class Core;

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

class Core final : public std::enable_shared_from_this<Core> {
 public:
  Core(std::shared_ptr<Reactor> reactor, CoreHost& host, Socket socket, CoreSetup setup);
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  // Any thread.
  void start(std::shared_ptr<Receiver> receiver);
  void send(wire::Frame frame, Priority priority);
  void close();
  /// Closes without flushing.
  void abort(Error error);
  void mark_proven();
  void set_reading(bool on);
  [[nodiscard]] std::size_t queued_bytes() const { return queued_bytes_; }
  [[nodiscard]] Traffic traffic() const { return {sent_bytes_, received_bytes_}; }
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
  static constexpr std::size_t kReadBytes = 64 << 10;     // small frames, headers
  static constexpr std::size_t kCipherBytes = 128 << 10;  // one read or write of records
  static constexpr std::size_t kRecordBytes = 16 << 10;   // plain text of a full TLS record
  static constexpr std::size_t kDirectBytes = 16 << 10;   // bodies missing more than this are read in place
  static constexpr std::chrono::seconds kCloseTime{1};    // to flush, and again to drain

  // core.cpp
  void fail(Error error);
  void close_on_strand();
  void finish_sending();
  void arm(std::chrono::milliseconds time, const char* what);
  Handshake& greeting();
  void on_handshaken(const Status& status);
  [[nodiscard]] Error network_error(const std::string& what) const;

  // core_read.cpp
  void read();
  void read_plain();
  void read_tls();
  void discard();
  void on_plain(std::size_t count, std::size_t direct);
  void on_cipher();
  bool on_bytes(std::span<const std::byte> bytes);
  bool on_filled(std::size_t count);
  bool deliver();
  bool count_received(std::size_t count);
  void on_read_error(const NetError& error);
  void on_end();
  void refuse_tls();

  // core_write.cpp
  void write();
  bool refill();
  void write_plain();
  void write_tls();
  bool encrypt();
  void flush_output();
  void on_written(std::size_t plain_bytes);
  void on_write_error(const NetError& error);

  std::shared_ptr<Reactor> reactor_;
  CoreHost& host_;
  Socket socket_;
  net::steady_timer close_timer_;
  net::steady_timer unproven_timer_;
  CoreSetup setup_;
  PeerIdentity peer_;
  ReadBudget budget_;
  std::unique_ptr<TlsSession> tls_;
  std::function<void(Status)> on_handshake_;
  std::optional<Handshake> handshake_;
  State state_ = State::handshaking;

  // Reading.
  FrameReader reader_;
  std::shared_ptr<Receiver> receiver_;
  std::vector<std::byte> input_;  // plain: small frames; TLS: ciphertext
  std::vector<std::byte> plain_;  // TLS: plain text of small frames
  bool reading_ = false;
  bool read_waits_ = false;           // for set_reading(true)
  std::optional<Error> closed_with_;  // set when closed before start()

  // Writing.
  Batch batch_;
  std::vector<std::byte> record_;  // TLS: small pieces on their way into one record
  std::size_t output_sent_ = 0;
  std::size_t output_plain_bytes_ = 0;  // what is in the TLS output, before encryption
  bool write_failed_ = false;
  bool end_sent_ = false;

  std::mutex mutex_;  // guards queue_, writing_, no_more_sends_, closed_
  SendQueue queue_;
  bool writing_ = false;
  bool no_more_sends_ = false;
  bool closed_ = false;
  std::atomic<bool> held_{false};  // by set_reading(false)
  std::atomic<std::size_t> queued_bytes_{0};
  std::atomic<std::uint64_t> sent_bytes_{0};
  std::atomic<std::uint64_t> received_bytes_{0};
};

}  // namespace motley::transport

#pragma once
// What goes over a connection, plain or TLS: from the queues to the socket. Private to tcp/. send(), take_no_more(),
// queued_bytes() and bytes() may be called from any thread; all else runs on the strand of the socket.

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "transport/connection.h"
#include "transport/tcp/net.h"
#include "transport/tcp/send_queue.h"
#include "transport/tcp/tls.h"

namespace motley::transport {

class Outgoing {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    /// Keeps the owner, and this with it, while anything is under way.
    virtual std::shared_ptr<const void> keep() = 0;
    /// After finish(): everything is handed to the kernel.
    virtual void on_all_sent() = 0;
    /// The other side takes no more. What was queued is gone.
    virtual void on_not_taken(const std::string& why) = 0;
  };

  /// REQUIRES both outlive this.
  Outgoing(Socket& socket, Owner& owner) : socket_(socket), owner_(owner) {}
  Outgoing(const Outgoing&) = delete;
  Outgoing& operator=(const Outgoing&) = delete;

  /// Over TLS, before the first frame. REQUIRES its handshake is done, and that it outlives this.
  void encrypt(TlsSession& tls);
  void send(wire::Frame frame, Priority priority);
  /// What send() gets from now on is dropped.
  void take_no_more();
  [[nodiscard]] std::size_t queued_bytes() const { return queued_bytes_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

  /// Sends what is queued, then that this is the end. REQUIRES take_no_more().
  void finish();
  /// Forgets what is queued; no handler does anything any more.
  void stop();

 private:
  enum class Mode : std::uint8_t { open, finishing, finished, not_taken, stopped };
  static constexpr std::size_t kSealedBytes = 8 * kRecordBytes;  // in one write, and what the last record adds

  void write();
  bool refill();
  void write_plain();
  void write_tls();
  void seal_record();
  void send_sealed();
  void flush_sealed();
  void on_written(std::size_t plain_bytes);
  void on_write_error(const NetError& error);
  void drop_queue();

  Socket& socket_;
  Owner& owner_;
  Mode mode_ = Mode::open;
  Batch batch_;
  TlsSession* tls_ = nullptr;
  std::vector<std::byte> joined_;       // TLS: small pieces that share a record
  std::vector<std::byte> sealed_;       // TLS: records on their way to the socket
  std::size_t sealed_sent_ = 0;         // of them
  std::size_t sealed_plain_bytes_ = 0;  // what is in them, before encryption
  bool end_sent_ = false;

  std::mutex mutex_;  // guards queue_, writing_, no_more_
  SendQueue queue_;
  bool writing_ = false;
  bool no_more_ = false;
  std::atomic<std::size_t> queued_bytes_{0};
  std::atomic<std::uint64_t> bytes_{0};
};

}  // namespace motley::transport

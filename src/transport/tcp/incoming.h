#pragma once
// What comes over a connection, plain or TLS: from the socket to frames. Private to tcp/. hold(), resume() and bytes()
// may be called from any thread; all else runs on the strand of the socket.

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "transport/connection.h"
#include "transport/tcp/frame_reader.h"
#include "transport/tcp/net.h"
#include "transport/tcp/read_budget.h"
#include "transport/tcp/tls.h"

namespace motley::transport {

class Incoming {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    /// Keeps the owner, and this with it, while anything is under way.
    virtual std::shared_ptr<const void> keep() = 0;
    virtual void on_frame(wire::Frame frame) = 0;
    /// Nothing more comes. The owner stops this.
    virtual void on_no_more(Error error) = 0;
  };

  struct Over {
    Socket& socket;
    ReadBudget& budget;
    TlsRole role = TlsRole::client;
    const PeerIdentity& peer;
    BufferPool& pool;
  };

  /// REQUIRES all outlive this.
  Incoming(Over over, Owner& owner) : over_(over), owner_(owner), reader_(over.pool) {}
  Incoming(const Incoming&) = delete;
  Incoming& operator=(const Incoming&) = delete;

  /// Its limits are the connection's, set before begin().
  FrameReader& reader() { return reader_; }
  /// Of the handshake before begin().
  std::vector<std::byte>& input() { return input_; }
  /// Before begin(), over TLS. REQUIRES its handshake is done, over input(), and that it outlives this.
  void decrypt(TlsSession& tls);

  /// Once, after the handshake.
  void begin();
  [[nodiscard]] bool begun() const { return mode_ != Mode::idle; }
  /// From now on reads to the end without looking, so that the kernel has no reason to send a reset.
  void discard();
  /// No handler does anything any more.
  void stop() { mode_ = Mode::stopped; }

  /// Whether to leave what comes in the kernel.
  void hold(bool on) { held_ = on; }
  /// After hold(false).
  void resume();
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  enum class Mode : std::uint8_t { idle, frames, discarding, stopped };
  static constexpr std::size_t kReadBytes = 64 << 10;    // small frames, headers
  static constexpr std::size_t kDirectBytes = 16 << 10;  // bodies missing more than this are read in place
  static constexpr std::size_t kAtOnceBytes = 128 << 10;

  void read();
  void read_plain();
  void read_tls();
  void read_away();
  /// Before a read: at least so many bytes are still to come.
  void expect(std::size_t bytes);
  /// False: the answer to a read of the socket is no longer of interest, or it failed.
  bool goes_on(const NetError& error, std::size_t count);
  void on_cipher();
  bool on_read(std::size_t in_place, std::span<const std::byte> behind);
  bool on_bytes(std::span<const std::byte> bytes);
  bool on_filled(std::size_t count);
  bool deliver();
  void on_read_error(const NetError& error);
  void on_end();
  void refuse_tls();

  Over over_;
  Owner& owner_;
  Mode mode_ = Mode::idle;
  FrameReader reader_;
  TlsSession* tls_ = nullptr;
  std::vector<std::byte> input_;              // plain: small frames; TLS: records
  std::vector<std::byte> plain_;              // TLS: plain text of small frames
  [[maybe_unused]] std::size_t at_once_ = 1;  // bytes in the kernel that are worth waking for
  bool waits_ = false;                        // for resume()
  std::atomic<bool> held_{false};
  std::atomic<std::uint64_t> bytes_{0};
};

}  // namespace motley::transport

#pragma once
// Connection and Listener: what every transport offers. inproc/ joins two ends in one process; tcp/ is the only place
// that sees sockets and TLS.

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "motley/result.h"
#include "wire/frame.h"

namespace motley::transport {

/// Lower goes first. Within one class frames keep their order.
enum class Priority : std::uint8_t { control, weights, gradients, background };
inline constexpr std::size_t kPriorities = 4;

struct Traffic {
  std::uint64_t sent_bytes = 0;  // frames with their headers, and what there is of the last one, before encryption
  std::uint64_t received_bytes = 0;
};

struct PeerIdentity {
  std::string address;  // "192.168.1.7:51344", "this machine", "inproc"
  bool encrypted = false;
  std::array<std::uint8_t, 32> spki{};  // SHA-256 of the other side's public key; zero without TLS
  // Of this connection and no other, equal on both sides: the TLS exporter value, or of a local socket a hash of what
  // both sides drew for it. Zero without TLS on the network.
  std::array<std::uint8_t, 32> exporter{};
  std::string cipher{};       // "TLS_AES_128_GCM_SHA256"; empty without TLS
  bool same_machine = false;  // no network in between, and the same user at both ends
};

/// Receives what a connection yields, one call at a time, on a thread of the transport, or within one process on that
/// of the other end; must return quickly. After on_closed nothing more comes.
class Receiver {
 public:
  virtual ~Receiver() = default;
  virtual void on_frame(wire::Frame frame) = 0;
  /// `error.code`: network (reset, end of file, silence), protocol (bad frame), refused (limit).
  virtual void on_closed(Error error) = 0;
};

/// Dropping the last handle closes the connection, as close() does.
class Connection {
 public:
  virtual ~Connection() = default;
  /// Starts delivery. Called once; frames that came before are kept until then.
  virtual void start(std::shared_ptr<Receiver> receiver) = 0;
  /// Thread-safe, never blocks. After close() or failure frames are dropped.
  virtual void send(wire::Frame frame, Priority priority) = 0;
  /// Sends what is queued (for at most a second), then closes. Thread-safe; idempotent. on_closed follows; frames that
  /// come in between are dropped.
  virtual void close() = 0;
  /// Whether to read what comes: without, it waits in the kernel and at the other side. Thread-safe; at first true.
  /// Frames that are read already still arrive.
  virtual void set_reading(bool on) = 0;
  /// Bytes queued and not yet handed to the kernel.
  [[nodiscard]] virtual std::size_t queued_bytes() const = 0;
  [[nodiscard]] virtual Traffic traffic() const = 0;
  [[nodiscard]] virtual const PeerIdentity& peer() const = 0;
  /// Lifts the limits for unproven connections (bytes in total, time); called once the peer has proven the secret.
  virtual void mark_proven() = 0;
};

class Listener {
 public:
  virtual ~Listener() = default;
  [[nodiscard]] virtual std::uint16_t port() const = 0;
  virtual void close() = 0;
};

using AcceptHandler = std::function<void(std::shared_ptr<Connection>)>;           // on a thread of the transport
using ConnectHandler = std::function<void(Result<std::shared_ptr<Connection>>)>;  // likewise

}  // namespace motley::transport

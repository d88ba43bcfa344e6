#pragma once
// TCP with TLS 1.3 (or plain, when asked), and local sockets, plain, between processes of one machine. Owns its I/O
// threads; no Asio or OpenSSL type shows here.

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "transport/connection.h"
#include "transport/crypto.h"
#include "wire/limits.h"

namespace motley::transport {

/// What a connection may take before its peer has proven the secret. Tests shrink them.
struct TcpLimits {
  std::size_t unproven_bytes_max = wire::kUnprovenBytesMax;
  std::chrono::milliseconds unproven_time = wire::kUnprovenTime;
  std::size_t unproven_max = wire::kUnprovenMax;
  std::size_t unproven_per_address_max = wire::kUnprovenPerAddressMax;
  std::size_t silent_max = wire::kSilentMax;
  std::size_t silent_per_address_max = wire::kSilentPerAddressMax;
  std::size_t knocked_max = wire::kKnockedMax;
  std::size_t handshakes_per_second_max = wire::kHandshakesPerSecondMax;
};

struct TcpOptions {
  std::size_t io_threads = 1;
  bool plaintext = false;
  std::optional<Identity> identity;  // required unless plaintext; shown in both roles
  // With TLS: who connects shows that he knows this, and of those who connect the ones that do come in first.
  std::optional<Digest> knock = {};
  TcpLimits limits = {};
};

struct Endpoint {
  std::string host;  // name or address, IPv4 or IPv6; "@name": a local socket, whose port is 0
  std::uint16_t port = 0;
};

/// Only processes of the same user get through to it, and of the same network namespace: what a container or a
/// simulated host has of its own network stays between the two. Where the system has none (all but Linux), listen()
/// and connect() fail at once.
[[nodiscard]] Endpoint local_endpoint(std::string_view name);

/// Whether this is why connect() failed: every address answered, and no program was there.
[[nodiscard]] bool nobody_listens(const Error& error);

class Tcp {
 public:
  explicit Tcp(TcpOptions options);
  ~Tcp();  // closes everything and joins its threads
  Tcp(const Tcp&) = delete;
  Tcp& operator=(const Tcp&) = delete;

  /// Limits before proof (wire/limits.h) are kept here: bytes, time, number, per source address, handshakes a second.
  /// Errors: busy (port or name in use: names it), network, input (bad address).
  Result<std::unique_ptr<Listener>> listen(const Endpoint& endpoint, AcceptHandler on_accept);

  /// Tries the endpoints in turn. With TLS the server's key must hash to `pinned_spki`, else ErrorCode::refused. A
  /// local one that does not answer is not worth a word in the error beside others.
  /// Errors: network (names the address and what happened), refused.
  void connect(std::vector<Endpoint> endpoints, std::optional<Digest> pinned_spki, std::chrono::milliseconds timeout,
               ConnectHandler on_done);

  /// From now on at least so many I/O threads, for connections that together need more than one core.
  void use_threads(std::size_t count);
  /// Unproven connections dropped so far, and why not more is known of them.
  [[nodiscard]] std::uint64_t dropped_connections() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace motley::transport

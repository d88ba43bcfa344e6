#pragma once
// The handshake of TLS 1.3 over buffers in memory: no socket and no thread in here. What comes after it: records.h.
// Private to tcp/. A TlsSession belongs to one strand; a TlsContext is shared by all of them.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "motley/result.h"
#include "transport/crypto.h"
#include "transport/tcp/record_keys.h"

namespace motley::transport {

/// The record "fatal: protocol version", from which a peer that speaks TLS knows that this side does not, and one that
/// does not knows that this side does.
inline constexpr std::array<std::uint8_t, 7> kProtocolVersionAlert{0x15, 3, 3, 0, 2, 2, 70};

enum class TlsRole : std::uint8_t { client, server };

class TlsContext {
 public:
  explicit TlsContext(const Identity& identity);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

 private:
  friend class TlsSession;
  struct State;
  std::unique_ptr<State> state_;
};

class TlsSession {
 public:
  /// With `pin` the other side's public key must hash to it.
  TlsSession(const TlsContext& context, TlsRole role, std::optional<Digest> pin);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  /// Ciphertext from the socket. It is not copied: it must stay until a step below asks for more.
  void provide(std::span<const std::byte> ciphertext) noexcept;
  /// Ciphertext for the socket: to be sent and cleared after every step below.
  [[nodiscard]] std::vector<std::byte>& output() noexcept;

  enum class Step : std::uint8_t { done, want_input, failed };
  Step handshake();
  /// After `failed`: what happened, and whether it was the pin.
  [[nodiscard]] const std::string& failure() const noexcept;
  [[nodiscard]] bool wrong_pin() const noexcept;
  /// The other side does not speak TLS 1.3 at all.
  [[nodiscard]] bool not_tls() const noexcept;

  // All that follows REQUIRES handshake() is done.
  struct Secrets {
    TrafficSecret ours, theirs;
  };
  /// Of the records that come next, the first with these in each direction.
  [[nodiscard]] Secrets secrets() const;
  /// What came behind the handshake.
  [[nodiscard]] std::span<const std::byte> rest() const noexcept;
  [[nodiscard]] Digest peer_spki() const;
  [[nodiscard]] Digest exporter() const;
  [[nodiscard]] std::string cipher() const;

 private:
  friend class TlsContext;  // installs the verification of keys
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace motley::transport

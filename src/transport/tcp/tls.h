#pragma once
// TLS 1.3 over buffers in memory: no socket and no thread in here, so that one read and one write of the socket carry
// many records. Private to tcp/. A TlsSession belongs to one strand; a TlsContext is shared by all of them.

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

  struct Read {
    std::size_t count = 0;  // bytes of plain text; zero: see `state`
    enum class State : std::uint8_t { more, want_input, end, failed } state = State::more;
  };
  Read read(std::span<std::byte> plain);
  /// Appends the records to output(). False on failure.
  bool write(std::span<const std::byte> plain);
  /// Appends close_notify to output().
  void shut_down();

  /// REQUIRES handshake() is done.
  [[nodiscard]] Digest peer_spki() const;
  [[nodiscard]] Digest exporter() const;
  [[nodiscard]] std::string cipher() const;

 private:
  friend class TlsContext;  // installs the verification of keys
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace motley::transport

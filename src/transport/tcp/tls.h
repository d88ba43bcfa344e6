#pragma once
// TLS 1.3 over buffers in memory, by OpenSSL: no socket and no thread in here.
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

namespace motley::transport {

/// The record "fatal: protocol version", from which a peer that speaks TLS knows that this side does not, and one that
/// does not knows that this side does.
inline constexpr std::array<std::uint8_t, 7> kProtocolVersionAlert{0x15, 3, 3, 0, 2, 2, 70};

inline constexpr std::size_t kRecordBytes = std::size_t{16} << 10;  // of plain text at most

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
  /// RFC 8446 (5.5) lets AES-GCM seal at most 2^24.5 records with one key.
  static constexpr std::uint64_t kRecordsAKey = std::uint64_t{1} << 24;

  /// With `pin` the other side's public key must hash to it.
  TlsSession(const TlsContext& context, TlsRole role, std::optional<Digest> pin,
             std::uint64_t records_a_key = kRecordsAKey);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  /// Ciphertext from the socket. It is not copied: it must stay until handshake() or open() asks for more.
  void provide(std::span<const std::byte> ciphertext) noexcept;
  /// Ciphertext for the socket: whoever sends it clears it.
  [[nodiscard]] std::vector<std::byte>& output() noexcept;

  enum class Step : std::uint8_t { done, want_input, failed };
  Step handshake();
  /// After `failed`: what happened, and whether it was the pin.
  [[nodiscard]] const std::string& failure() const noexcept;
  [[nodiscard]] bool wrong_pin() const noexcept;
  /// The other side does not speak TLS 1.3 at all.
  [[nodiscard]] bool not_tls() const noexcept;

  // All that follows REQUIRES handshake() is done.
  /// Appends one record to output(). REQUIRES 1 to kRecordBytes bytes.
  void seal(std::span<const std::byte> plain);
  /// Appends the farewell: nothing comes after it.
  void seal_end();

  struct Opened {
    enum class What : std::uint8_t { data, want_input, end, failed } what = What::data;
    std::size_t count = 0;  // bytes of data, at most one record's
  };
  /// Decrypts what provide() brought into the front of `plain`; what of a record does not fit there comes with the next
  /// call. Nothing is given out before its record was found to be what the other side sealed. REQUIRES room for a byte.
  Opened open(std::span<std::byte> plain);
  [[nodiscard]] Digest peer_spki() const;
  [[nodiscard]] Digest exporter() const;
  [[nodiscard]] std::string cipher() const;

 private:
  friend class TlsContext;  // installs the verification of keys
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace motley::transport

#pragma once
// The keys of one direction of TLS 1.3, and what they do to single records (RFC 8446, 5.2, 5.3 and 7.2), with the
// ciphers of OpenSSL. Private to tcp/; one thread at a time.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace motley::transport {

enum class RecordSuite : std::uint8_t { aes_128_gcm, aes_256_gcm, chacha20_poly1305 };

/// From which the keys of one direction follow. Wiped when it goes.
struct TrafficSecret {
  static constexpr std::size_t kBytesMax = 48;
  TrafficSecret() = default;
  ~TrafficSecret();
  TrafficSecret(const TrafficSecret&) = default;
  TrafficSecret& operator=(const TrafficSecret&) = default;

  RecordSuite suite = RecordSuite::aes_128_gcm;
  std::array<std::uint8_t, kBytesMax> bytes{};
  std::size_t size = 0;  // that of the suite's hash
};

class RecordKeys {
 public:
  static constexpr std::size_t kHeaderBytes = 5;
  static constexpr std::size_t kTagBytes = 16;
  enum class Use : std::uint8_t { seal, open };

  /// REQUIRES the secret is as long as its suite's hash.
  RecordKeys(const TrafficSecret& secret, Use use);
  ~RecordKeys();
  RecordKeys(const RecordKeys&) = delete;
  RecordKeys& operator=(const RecordKeys&) = delete;

  using Header = std::span<const std::byte, kHeaderBytes>;
  using Tag = std::span<std::byte, kTagBytes>;

  /// The next record. Between begin() and its end any number of pieces, each `in.size()` bytes at `out`.
  void begin(Header header);
  void piece(std::span<const std::byte> in, std::byte* out);
  void end_sealed(Tag tag);
  /// False: these are not the bytes that the other side has sealed, and what came out of them is worth nothing.
  [[nodiscard]] bool end_opened(std::span<const std::byte, kTagBytes> tag);
  /// Records since the keys were made.
  [[nodiscard]] std::uint64_t records() const noexcept { return records_; }
  /// From the next record on the keys are those after these.
  void renew();

  [[nodiscard]] std::span<const std::uint8_t> key() const noexcept;
  [[nodiscard]] std::span<const std::uint8_t, 12> iv() const noexcept { return iv_; }

 private:
  static constexpr std::size_t kKeyBytesMax = 32;
  void derive();

  struct Cipher;
  std::unique_ptr<Cipher> cipher_;
  TrafficSecret secret_;
  Use use_;
  std::array<std::uint8_t, kKeyBytesMax> key_{};
  std::array<std::uint8_t, 12> iv_{};
  std::uint64_t records_ = 0;
};

}  // namespace motley::transport

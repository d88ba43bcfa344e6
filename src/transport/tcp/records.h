#pragma once
// TLS 1.3 after its handshake: records that are encrypted from where a frame lies into the buffer for the socket, and
// decrypted from the buffer of the socket into where the frame is to lie. OpenSSL's own SSL_write and SSL_read copy
// every byte twice more (docs/design/0042). Private to tcp/; no socket in here. One thread at a time.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "transport/tcp/record_keys.h"

namespace motley::transport {

inline constexpr std::size_t kRecordBytes = std::size_t{16} << 10;  // of plain text at most
/// Header, plain text, its kind, tag.
inline constexpr std::size_t kSealedBytesMax = RecordKeys::kHeaderBytes + kRecordBytes + 1 + RecordKeys::kTagBytes;

class RecordSealer {
 public:
  /// RFC 8446 (5.5) has AES-GCM seal at most 2^24.5 records with one key.
  static constexpr std::uint64_t kRecordsAKey = std::uint64_t{1} << 24;

  explicit RecordSealer(const TrafficSecret& secret, std::uint64_t records_a_key = kRecordsAKey);

  /// Whether one more record fits, of whatever size.
  [[nodiscard]] bool has_room() const noexcept { return output_.size() - used_ >= kRoomBytes; }
  /// Appends a record of `size` bytes to output(), which add() brings in order. REQUIRES has_room(), a positive size.
  void begin(std::size_t size);
  void add(std::span<const std::byte> plain);
  void end();
  /// Appends the farewell. REQUIRES as begin().
  void close();

  /// For the socket; empty() after clear().
  [[nodiscard]] std::span<const std::byte> output() const noexcept { return std::span(output_).first(used_); }
  void clear() noexcept { used_ = 0; }

 private:
  static constexpr std::size_t kOutputBytes = (std::size_t{8} << 14) + (4 << 10);  // 8 full records, a few short ones
  static constexpr std::size_t kUpdateBytes = 64;  // of what says that the keys change, and more
  static constexpr std::size_t kRoomBytes = kSealedBytesMax + kUpdateBytes;

  void begin_as(std::uint8_t kind, std::size_t size);
  void renew();

  RecordKeys keys_;
  std::uint64_t records_a_key_;
  std::vector<std::byte> output_;
  std::size_t used_ = 0;
  std::size_t missing_ = 0;  // of the record that was begun
  std::uint8_t kind_ = 0;    // of it
};

class RecordOpener {
 public:
  explicit RecordOpener(const TrafficSecret& secret) : keys_(secret, RecordKeys::Use::open) {}

  struct Opened {
    enum class What : std::uint8_t { data, want_input, end, failed } what = What::data;
    std::size_t count = 0;  // of data
  };
  /// Takes whole records off the front of `sealed` until one has data, which goes into `first` and, what does not fit
  /// there, into `rest`. Either may be written to although nothing came of it. REQUIRES `rest` takes kRecordBytes.
  Opened open(std::span<const std::byte>& sealed, std::span<std::byte> first, std::span<std::byte> rest);
  /// After `failed`.
  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }

 private:
  static constexpr std::uint32_t kSilentMax = 32;  // records in a row without data

  Opened fail(const char* why);
  Opened open_one(std::span<const std::byte> record, std::span<std::byte> first, std::span<std::byte> rest);
  Opened on_other(std::uint8_t kind, std::span<const std::byte> content);

  RecordKeys keys_;
  std::uint32_t silent_ = 0;
  std::string failure_;
};

}  // namespace motley::transport

#pragma once
// Immutable reference-counted bytes: what frames, weight chunks and snapshots are made of. Copying a SharedBytes
// copies a handle. Thread safety: as std::shared_ptr; the bytes themselves never change while shared.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

namespace motley {

class MutableBytes;

/// What is known on the host of bytes that lie in a device's memory, where nobody else may read them: floats.
struct OnDevice {
  float largest = 0;  // magnitude; infinity if any is NaN or infinite
};

class SharedBytes {
 public:
  SharedBytes() = default;
  SharedBytes(std::shared_ptr<const void> owner, std::span<const std::byte> bytes) noexcept
      : owner_(std::move(owner)), bytes_(bytes) {}
  /// `on_device`: lives as long as the owner.
  SharedBytes(std::shared_ptr<const void> owner, std::span<const std::byte> bytes, const OnDevice* on_device) noexcept
      : owner_(std::move(owner)), bytes_(bytes), on_device_(on_device) {}

  /// A copy of `bytes` in memory of its own, aligned as BufferPool's.
  static SharedBytes copy_of(std::span<const std::byte> bytes);

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_.size(); }
  [[nodiscard]] bool empty() const noexcept { return bytes_.empty(); }
  /// The same owner, fewer bytes. REQUIRES offset + count <= size().
  [[nodiscard]] SharedBytes slice(std::size_t offset, std::size_t count) const {
    return {owner_, bytes_.subspan(offset, count), on_device_};
  }
  /// The bytes as floats. REQUIRES size() % 4 == 0 and 4-byte alignment (true for pooled buffers).
  [[nodiscard]] std::span<const float> floats() const noexcept {
    return {reinterpret_cast<const float*>(bytes_.data()), bytes_.size() / sizeof(float)};
  }

  /// null: they are in the host's memory.
  [[nodiscard]] const OnDevice* on_device() const noexcept { return on_device_; }

  /// The buffer to write into again where nobody else holds it, and this is empty then; else nothing. REQUIRES that it
  /// was sealed from MutableBytes.
  [[nodiscard]] std::optional<MutableBytes> unseal();

 private:
  std::shared_ptr<const void> owner_;
  std::span<const std::byte> bytes_;
  const OnDevice* on_device_ = nullptr;
};

/// A buffer that is filled once and then sealed into SharedBytes. Move-only.
class MutableBytes {
 public:
  MutableBytes() = default;
  MutableBytes(std::shared_ptr<void> owner, std::span<std::byte> bytes) noexcept
      : owner_(std::move(owner)), bytes_(bytes) {}
  MutableBytes(MutableBytes&&) noexcept = default;
  MutableBytes& operator=(MutableBytes&&) noexcept = default;
  MutableBytes(const MutableBytes&) = delete;
  MutableBytes& operator=(const MutableBytes&) = delete;
  ~MutableBytes() = default;

  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::span<float> floats() const noexcept {
    return {reinterpret_cast<float*>(bytes_.data()), bytes_.size() / sizeof(float)};
  }
  [[nodiscard]] SharedBytes seal() && { return {std::move(owner_), bytes_}; }

 private:
  std::shared_ptr<void> owner_;
  std::span<std::byte> bytes_;
};

/// Recycles buffers by size class, so that a steady step allocates nothing. Thread-safe. Buffers may outlive the pool.
/// At most `idle_bytes_max` are kept for reuse.
class BufferPool {
 public:
  static constexpr std::size_t kPageBytes = 4096;
  static constexpr std::size_t kPagedBytesMin = std::size_t{1} << 16;
  explicit BufferPool(std::size_t idle_bytes_max = std::size_t{1} << 30);
  /// A buffer of exactly `size` usable bytes, aligned to 64 bytes, and from 64 KiB on to 4,096, as writing past the
  /// page cache asks for; contents are unspecified.
  [[nodiscard]] MutableBytes take(std::size_t size);

 private:
  struct Shelf;
  std::shared_ptr<Shelf> shelf_;
};

}  // namespace motley

#include "motley/bytes.h"

#include <bit>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <unordered_map>
#include <vector>

namespace motley {
namespace {

constexpr std::size_t kAlignment = 64;

// Aligned by hand, how far is kept in front: what aligned_alloc() has cut to size, glibc does not find again for the
// next request of that size, and the heap of a server grew by a quarter.
std::byte* allocate(std::size_t size) {
  const std::size_t alignment = size < BufferPool::kPagedBytesMin ? kAlignment : BufferPool::kPageBytes;
  auto* const block = static_cast<std::byte*>(std::malloc(size + alignment));
  if (block == nullptr) throw std::bad_alloc();
  const auto shift = static_cast<std::uint16_t>(alignment - reinterpret_cast<std::uintptr_t>(block) % alignment);
  std::byte* const data = block + shift;
  std::memcpy(data - sizeof(shift), &shift, sizeof(shift));
  return data;
}

void release(std::byte* data) noexcept {
  std::uint16_t shift = 0;
  std::memcpy(&shift, data - sizeof(shift), sizeof(shift));
  std::free(data - shift);
}

// Powers of two below 64 KiB; then by so fine steps that large chunks waste at most 3 %.
std::size_t size_class(std::size_t size) noexcept {
  if (size <= 256) return 256;
  const std::size_t power = std::bit_ceil(size);
  if (power <= (std::size_t{1} << 16)) return power;
  const std::size_t grain = power / 64;
  return (size + grain - 1) / grain * grain;
}

}  // namespace

SharedBytes SharedBytes::copy_of(std::span<const std::byte> bytes) {
  std::shared_ptr<std::byte> owner(allocate(bytes.empty() ? 1 : bytes.size()), release);
  if (!bytes.empty()) std::memcpy(owner.get(), bytes.data(), bytes.size());
  std::byte* data = owner.get();
  return {std::move(owner), {data, bytes.size()}};
}

std::optional<MutableBytes> SharedBytes::unseal() {
  if (owner_.use_count() != 1) return std::nullopt;
  // The count says that others are done; giving up a handle of our own makes all that they did happen before.
  std::shared_ptr<const void>(owner_).reset();
  const std::span<const std::byte> bytes = std::exchange(bytes_, {});
  return MutableBytes(std::const_pointer_cast<void>(std::exchange(owner_, nullptr)),
                      {const_cast<std::byte*>(bytes.data()), bytes.size()});
}

struct BufferPool::Shelf {
  std::mutex mutex;
  std::unordered_map<std::size_t, std::vector<std::byte*>> idle;
  std::size_t idle_bytes = 0;
  std::size_t idle_bytes_max = 0;

  ~Shelf() {
    for (auto& [size, buffers] : idle) {
      for (std::byte* buffer : buffers) release(buffer);
    }
  }
  std::byte* take(std::size_t size) {
    {
      const std::lock_guard lock(mutex);
      auto& buffers = idle[size];
      if (!buffers.empty()) {
        std::byte* buffer = buffers.back();
        buffers.pop_back();
        idle_bytes -= size;
        return buffer;
      }
    }
    return allocate(size);
  }
  void give(std::byte* buffer, std::size_t size) noexcept {
    {
      const std::lock_guard lock(mutex);
      if (idle_bytes + size <= idle_bytes_max) {
        idle[size].push_back(buffer);
        idle_bytes += size;
        return;
      }
    }
    release(buffer);
  }
};

BufferPool::BufferPool(std::size_t idle_bytes_max) : shelf_(std::make_shared<Shelf>()) {
  shelf_->idle_bytes_max = idle_bytes_max;
}

MutableBytes BufferPool::take(std::size_t size) {
  const std::size_t rounded = size_class(size);
  std::byte* data = shelf_->take(rounded);
  std::shared_ptr<std::byte> owner(data,
                                   [shelf = shelf_, rounded](std::byte* buffer) { shelf->give(buffer, rounded); });
  return {std::move(owner), {data, size}};
}

}  // namespace motley

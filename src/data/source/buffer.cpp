#include "data/source/buffer.h"

#include <limits>
#include <memory>
#include <new>

#include "machine/spare_memory.h"

namespace motley::data {
namespace {

constexpr std::uint64_t kWorthAsking = std::uint64_t{8} << 20;

}  // namespace

Result<MutableBytes> allocate(std::uint64_t size, const std::string& what_for) {
  constexpr std::align_val_t kAlignment{64};
  if (size >= kWorthAsking) {
    Status room = machine::check_memory_for(size, what_for, "use a smaller data set, or a machine with more memory");
    if (!room) return room.error();
  }
  void* data = nullptr;
  if (size <= std::numeric_limits<std::size_t>::max() / 2) {
    data = ::operator new(static_cast<std::size_t>(size), kAlignment, std::nothrow);
  }
  if (data == nullptr) {
    return Error{ErrorCode::memory, what_for + ": " + std::to_string(size >> 20) + " MiB of memory are not to be had",
                 "use a smaller data set, or a machine with more memory"};
  }
  std::shared_ptr<void> owner(data, [](void* bytes) { ::operator delete(bytes, std::align_val_t{64}); });
  return MutableBytes(std::move(owner), {static_cast<std::byte*>(data), static_cast<std::size_t>(size)});
}

}  // namespace motley::data

#include "torch/cpu_memory.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <list>
#include <mutex>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "base/assert.h"
#include "machine/spare_memory.h"

#ifdef __APPLE__
#include <malloc/malloc.h>
#else
#include <malloc.h>
#endif

namespace motley::torch_adapter {
namespace {

constexpr std::size_t kIdleBytesMax = std::size_t{4} << 30;
constexpr std::size_t kLargeBytes = 1 << 20;  // below this the C library reuses well itself
/// Four classes a power of two, so that micro-batches of nearly equal size share blocks.
std::size_t class_of(std::size_t bytes) noexcept {
  const std::size_t step = std::bit_floor(bytes) / 4;
  return (bytes + step - 1) / step * step;
}

/// What the C library set aside for a block of its own.
std::int64_t size_of_small(void* block) noexcept {
#ifdef __APPLE__
  return static_cast<std::int64_t>(malloc_size(block));
#else
  return static_cast<std::int64_t>(malloc_usable_size(block));
#endif
}

class ReusingAllocator final : public c10::Allocator {
 public:
  explicit ReusingAllocator(std::size_t idle_bytes_max) : idle_bytes_max_(idle_bytes_max) {}

  c10::DataPtr allocate(std::size_t bytes) override {
    void* block = bytes < kLargeBytes ? take_small(bytes) : take(bytes);
    return {block, block, &give_back, c10::Device(c10::DeviceType::CPU)};
  }
  // oneDNN's convolutions come this way, also with blocks that were allocated before this allocator was installed.
  c10::DeleterFnPtr raw_deleter() const override { return &give_back; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }
  std::size_t idle() {
    const std::lock_guard lock(mutex_);
    return idle_bytes_;
  }
  /// Bytes of the process that are tensors' or kept for them.
  std::size_t held() {
    const std::lock_guard lock(mutex_);
    return touched_ + small();
  }
  void limit(std::size_t bytes, std::size_t for_others) {
    const std::lock_guard lock(mutex_);
    limit_ = bytes;
    keep_limit_ = bytes > for_others ? bytes - for_others : 0;
    while (touched_ + small() > keep_limit_ && !idle_.empty()) drop_oldest();
  }
  CpuMemory take_use() {
    const std::int64_t used = std::max<std::int64_t>(0, live_.load());
    const std::int64_t peak = std::max(used, peak_.exchange(used));
    return {static_cast<std::size_t>(used), static_cast<std::size_t>(peak), 0};
  }

 private:
  struct Block {
    void* data = nullptr;
    std::size_t size = 0;
    std::size_t touched = 0;  // the most that was asked for: pages beyond it were never given out
    std::size_t asked = 0;
  };

  void* take_small(std::size_t bytes) {
    if (bytes == 0) return nullptr;
    if (std::cmp_greater(live_.load(std::memory_order_relaxed), limit_.load(std::memory_order_relaxed))) full(bytes);
    void* block = c10::alloc_cpu(bytes);
    const std::int64_t size = size_of_small(block);
    small_.fetch_add(size, std::memory_order_relaxed);
    grow(size);
    return block;
  }
  void* take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const std::size_t size = class_of(bytes);
    Block block{nullptr, size, 0, 0};
    for (auto idle = idle_.begin(); idle != idle_.end(); ++idle) {
      if (idle->size != size) continue;
      block = *idle;
      idle_.erase(idle);
      idle_bytes_ -= size;
      break;
    }
    const std::size_t more = bytes > block.touched ? bytes - block.touched : 0;
    while (touched_ + small() + more > limit_ && !idle_.empty()) drop_oldest();
    if (touched_ + small() + more > limit_ || (block.data == nullptr && !map(block))) {
      if (block.data != nullptr) unmap(block);
      full(bytes);
    }
    block.asked = bytes;
    block.touched += more;
    touched_ += more;
    in_use_.emplace(block.data, block);
    grow(static_cast<std::int64_t>(bytes));
    return block.data;
  }
  void keep(void* data) {
    const std::lock_guard lock(mutex_);
    const auto found = in_use_.find(data);
    if (found == in_use_.end()) {
      const std::int64_t size = size_of_small(data);
      small_.fetch_sub(size, std::memory_order_relaxed);
      live_.fetch_sub(size, std::memory_order_relaxed);
      return c10::free_cpu(data);
    }
    const Block block = found->second;
    in_use_.erase(found);
    live_.fetch_sub(static_cast<std::int64_t>(block.asked), std::memory_order_relaxed);
    if (block.size > idle_bytes_max_ || touched_ + small() > keep_limit_) return unmap(block);
    while (idle_bytes_ + block.size > idle_bytes_max_) drop_oldest();
    idle_bytes_ += block.size;
    idle_.emplace_front(block);
  }
  // Mapped, not from the C library: it keeps what lies between blocks in use, and a limit would not know.
  bool map(Block& block) {
    const auto get = [&] {
      void* data = ::mmap(nullptr, block.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      block.data = data == MAP_FAILED ? nullptr : data;
      return block.data != nullptr;
    };
    while (!get()) {
      if (idle_.empty()) return false;
      drop_oldest();
    }
    return true;
  }
  void unmap(const Block& block) {
    touched_ -= block.touched;
    ::munmap(block.data, block.size);
  }
  void drop_oldest() {
    MOTLEY_ASSERT(!idle_.empty());
    idle_bytes_ -= idle_.back().size;
    unmap(idle_.back());
    idle_.pop_back();
  }
  void grow(std::int64_t bytes) noexcept {
    const std::int64_t live = live_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    std::int64_t peak = peak_.load(std::memory_order_relaxed);
    while (live > peak && !peak_.compare_exchange_weak(peak, live, std::memory_order_relaxed)) {
    }
  }
  [[nodiscard]] std::size_t small() const noexcept {
    return static_cast<std::size_t>(std::max<std::int64_t>(0, small_.load(std::memory_order_relaxed)));
  }
  [[noreturn]] void full(std::size_t bytes) const {
    TORCH_CHECK_WITH(OutOfMemoryError, false, "expected room for ", machine::mebibytes(bytes),
                     " more, found tensors of ",
                     machine::mebibytes(static_cast<std::uint64_t>(std::max<std::int64_t>(0, live_.load()))),
                     " where the machine can spare ", machine::mebibytes(limit_.load()));
  }
  static void give_back(void* block);

  const std::size_t idle_bytes_max_;
  std::mutex mutex_;
  std::list<Block> idle_;  // the latest first
  std::unordered_map<void*, Block> in_use_;
  std::size_t idle_bytes_ = 0;
  std::size_t touched_ = 0;  // of all blocks, in use and idle
  std::atomic<std::size_t> limit_ = std::numeric_limits<std::size_t>::max();
  std::size_t keep_limit_ = std::numeric_limits<std::size_t>::max();
  // Asked for and not yet given back; of blocks from before this allocator only the latter is seen.
  std::atomic<std::int64_t> small_ = 0, live_ = 0, peak_ = 0;
};

// torch's registry of allocators is one a process and never lets go, so neither does this: tensors may be freed after
// static destructors have run.
std::atomic<ReusingAllocator*> installed = nullptr;

void ReusingAllocator::give_back(void* block) {
  if (block != nullptr) installed.load(std::memory_order_acquire)->keep(block);
}

}  // namespace

void reuse_cpu_memory(std::size_t idle_bytes_max) {
  static std::once_flag once;
  std::call_once(once, [&] {
    installed.store(new ReusingAllocator(idle_bytes_max), std::memory_order_release);
    c10::SetCPUAllocator(installed.load(), /*priority=*/1);
  });
}

std::size_t idle_cpu_memory() {
  ReusingAllocator* allocator = installed.load(std::memory_order_acquire);
  return allocator == nullptr ? 0 : allocator->idle();
}

void limit_cpu_memory(std::size_t bytes, std::size_t for_others) {
  ReusingAllocator* allocator = installed.load(std::memory_order_acquire);
  if (allocator != nullptr) allocator->limit(bytes, for_others);
}

CpuMemory fit_cpu_memory(std::size_t for_others) {
  reuse_cpu_memory(kIdleBytesMax);
  ReusingAllocator* allocator = installed.load(std::memory_order_acquire);
  CpuMemory memory = allocator->take_use();
  const std::optional<std::uint64_t> more = machine::usable_memory_bytes();
  if (!more) return memory;
  memory.limit = allocator->held() + static_cast<std::size_t>(*more);
  allocator->limit(memory.limit, for_others);
  return memory;
}

}  // namespace motley::torch_adapter

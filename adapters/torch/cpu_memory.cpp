#include "torch/cpu_memory.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>

#include <atomic>
#include <bit>
#include <list>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "base/assert.h"

namespace motley::torch_adapter {
namespace {

constexpr std::size_t kLargeBytes = 1 << 20;  // below this the C library reuses well itself
/// Four classes a power of two, so that micro-batches of nearly equal size share blocks.
std::size_t class_of(std::size_t bytes) noexcept {
  const std::size_t step = std::bit_floor(bytes) / 4;
  return (bytes + step - 1) / step * step;
}

class ReusingAllocator final : public c10::Allocator {
 public:
  explicit ReusingAllocator(std::size_t idle_bytes_max)
      : small_(c10::GetDefaultCPUAllocator()), idle_bytes_max_(idle_bytes_max) {}

  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes < kLargeBytes) return small_->allocate(bytes);
    void* block = take(class_of(bytes));
    return {block, block, &give_back, c10::Device(c10::DeviceType::CPU)};
  }
  // oneDNN's convolutions come this way, also with blocks that were allocated before this allocator was installed.
  c10::DeleterFnPtr raw_deleter() const override { return &give_back; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }
  std::size_t idle() {
    const std::lock_guard lock(mutex_);
    return idle_bytes_;
  }

 private:
  void* take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    for (auto idle = idle_.begin(); idle != idle_.end(); ++idle) {
      if (idle->second != bytes) continue;
      void* block = idle->first;
      idle_.erase(idle);
      idle_bytes_ -= bytes;
      in_use_.emplace(block, bytes);
      return block;
    }
    void* block = nullptr;
    try {
      block = c10::alloc_cpu(bytes);
    } catch (const c10::Error&) {
      if (idle_.empty()) throw;
      shrink_to(0);
      block = c10::alloc_cpu(bytes);
    }
    in_use_.emplace(block, bytes);
    return block;
  }
  void keep(void* block) {
    const std::lock_guard lock(mutex_);
    const auto found = in_use_.find(block);
    if (found == in_use_.end()) return c10::free_cpu(block);  // a small one
    const std::size_t bytes = found->second;
    in_use_.erase(found);
    if (bytes > idle_bytes_max_) return c10::free_cpu(block);
    shrink_to(idle_bytes_max_ - bytes);
    idle_bytes_ += bytes;
    idle_.emplace_front(block, bytes);
  }
  void shrink_to(std::size_t bytes) {
    while (idle_bytes_ > bytes) {
      MOTLEY_ASSERT(!idle_.empty());
      idle_bytes_ -= idle_.back().second;
      c10::free_cpu(idle_.back().first);
      idle_.pop_back();
    }
  }
  static void give_back(void* block);

  c10::Allocator* small_;
  std::size_t idle_bytes_max_;
  std::mutex mutex_;
  std::list<std::pair<void*, std::size_t>> idle_;  // the latest first
  std::unordered_map<void*, std::size_t> in_use_;
  std::size_t idle_bytes_ = 0;
};

// torch's registry of allocators is one a process and never lets go, so neither does this: tensors may be freed after
// static destructors have run.
std::atomic<ReusingAllocator*> installed = nullptr;

void ReusingAllocator::give_back(void* block) { installed.load(std::memory_order_acquire)->keep(block); }

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

}  // namespace motley::torch_adapter

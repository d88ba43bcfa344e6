#include "torch/device_memory.h"

#include <ATen/detail/MPSHooksInterface.h>
#include <c10/core/CachingDeviceAllocator.h>

#include "machine/spare_memory.h"
#include "torch/cpu_memory.h"

namespace motley::torch_adapter {
namespace {

constexpr double kFreeOfCuda = 0.9;
constexpr double kRecommendedOfMps = 0.7;  // it is the memory of everything else on that machine, too

MemoryUse memory_of_card(const at::Device& device) {
  c10::DeviceAllocator* allocator = c10::getDeviceAllocator(device.type());
  const c10::CachingDeviceAllocator::DeviceStats stats = allocator->getDeviceStats(device.index());
  const auto of_all = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  const c10::CachingAllocator::Stat& asked = stats.allocated_bytes.at(of_all);
  const auto kept = static_cast<double>(stats.reserved_bytes.at(of_all).current);
  const auto free = static_cast<double>(allocator->getMemoryInfo(device.index()).first);
  allocator->resetPeakStats(device.index());
  return {static_cast<std::uint64_t>(asked.current), static_cast<std::uint64_t>(asked.peak),
          static_cast<std::uint64_t>(kept + kFreeOfCuda * free), 0};
}

MemoryUse memory_of_mps() {
  const at::MPSHooksInterface& mps = at::detail::getMPSHooks();
  // There is no peak to ask for; but what was freed stays with the driver's heap for a while.
  const std::uint64_t peak = mps.getDriverAllocatedMemory();
  return {mps.getCurrentAllocatedMemory(), peak,
          static_cast<std::uint64_t>(kRecommendedOfMps * static_cast<double>(mps.getRecommendedMaxMemory())), 0};
}

}  // namespace

MemoryUse memory_of(const at::Device& device, std::uint64_t for_others) {
  if (device.is_cuda()) return memory_of_card(device);
  if (device.is_mps()) return memory_of_mps();
  const CpuMemory cpu = fit_cpu_memory(for_others);
  return {cpu.used, cpu.peak, cpu.limit, machine::scratch_bytes(static_cast<unsigned>(at::get_num_threads()))};
}

}  // namespace motley::torch_adapter

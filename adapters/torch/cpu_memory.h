#pragma once
// The memory of CPU tensors. Large blocks are kept between steps: without it the C library gives every activation back
// to the system and faults its pages in again, a third of a small CNN's step. And they stay within what the machine can
// spare: an allocation beyond it throws as if memory had run out, where the system would kill the process later.
// Thread-safe.

#include <cstddef>

namespace motley::torch_adapter {

/// Makes torch in this process reuse CPU blocks of a megabyte and more, keeping at most `idle_bytes_max` unused. The
/// first call counts.
void reuse_cpu_memory(std::size_t idle_bytes_max);

/// Bytes kept for reuse now; 0 before reuse_cpu_memory().
std::size_t idle_cpu_memory();

/// Lets CPU tensors have at most `bytes` in all from now on. The last `for_others` of them are not kept for reuse.
void limit_cpu_memory(std::size_t bytes, std::size_t for_others = 0);

/// In bytes, of all CPU tensors.
struct CpuMemory {
  std::size_t used = 0;
  std::size_t peak = 0;   // the most since the last time it was asked
  std::size_t limit = 0;  // 0: nobody knows
};

/// Looks what the machine can spare now and makes it the limit. Installs the reuse if nobody did.
CpuMemory fit_cpu_memory(std::size_t for_others = 0);

}  // namespace motley::torch_adapter

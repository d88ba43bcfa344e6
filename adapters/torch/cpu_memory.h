#pragma once
// Keeps large CPU tensors' memory between steps. Without it the C library gives every activation back to the system and
// faults its pages in again: a third of a small CNN's step. Thread-safe.

#include <cstddef>

namespace motley::torch_adapter {

/// Makes torch in this process reuse CPU blocks of a megabyte and more, keeping at most `idle_bytes_max` unused. The
/// first call counts.
void reuse_cpu_memory(std::size_t idle_bytes_max);

/// Bytes kept for reuse now; 0 before reuse_cpu_memory().
std::size_t idle_cpu_memory();

}  // namespace motley::torch_adapter

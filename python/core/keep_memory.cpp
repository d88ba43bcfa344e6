// The memory of CPU tensors in a process whose models are computed by threads of ours.

#include "bindings.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace motley::python {

void share_one_heap() {
#ifdef __GLIBC__
  // Threads other than the first get heaps of 64 MiB of their own, from which every activation of a batch goes back to
  // the system and is faulted in again: a seventh of a small CNN's step. Heaps that are there stay in use, so this
  // comes before any thread.
  mallopt(M_ARENA_MAX, 1);
#endif
}

void keep_freed_memory() {
#ifdef __GLIBC__
  constexpr int kKept = 1 << 30;
  constexpr int kLargestOfHeap = 32 << 20;  // the most that glibc takes
  mallopt(M_MMAP_THRESHOLD, kLargestOfHeap);
  mallopt(M_TRIM_THRESHOLD, kKept);
#endif
}

}  // namespace motley::python

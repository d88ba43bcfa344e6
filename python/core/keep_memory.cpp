// The memory of CPU tensors in a process whose models are computed by threads of ours.

#include "bindings.h"
#include "machine/process_memory.h"
#include "machine/processor.h"
#include "machine/spare_memory.h"
#include "machine/system.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace motley::python {
namespace {

struct Limited {
  std::optional<machine::ProcessMemoryLimit> limit;
};

}  // namespace

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

void bind_memory(nb::module_& m) {
  m.def(
      "process_memory",
      [](unsigned threads) {
        const nb::gil_scoped_release no_gil;
        const machine::ProcessMemory memory = machine::process_memory();
        return std::make_tuple(memory.used, memory.peak, memory.budget, machine::scratch_bytes(threads));
      },
      nb::arg("threads"));
  m.def("machine", [] {
    return std::make_tuple(machine::processor_name(), machine::memory_bytes(), machine::allowed_processors());
  });
  m.def("system", [] { return machine::this_system().name; });
  nb::class_<Limited>(m, "MemoryLimit")
      .def(nb::init<>())
      .def("__enter__", [](Limited& context) { context.limit.emplace(); })
      .def("__exit__", [](Limited& context, const nb::args&) { context.limit.reset(); });
}

}  // namespace motley::python

// libgomp, where the torch of this process computes with it. Nothing here links with either.

#include <dlfcn.h>

#include "bindings.h"

namespace motley::python {

void end_idle_openmp_threads() {
  // Other OpenMP libraries have the function, too; theirs pauses the whole process.
  if (dlsym(RTLD_DEFAULT, "GOMP_parallel") == nullptr || dlsym(RTLD_DEFAULT, "kmp_set_blocktime") != nullptr) return;
  using Pause = int (*)(int kind);
  constexpr int kSoft = 1;
  if (const auto pause = reinterpret_cast<Pause>(dlsym(RTLD_DEFAULT, "omp_pause_resource_all"))) pause(kSoft);
}

}  // namespace motley::python

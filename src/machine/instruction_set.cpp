#include "machine/instruction_set.h"

namespace motley::machine {

#if defined(__x86_64__)
std::size_t instruction_sets() noexcept {
  if (!__builtin_cpu_supports("avx2")) return 1;
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return wide ? 3 : 2;
}
#else
std::size_t instruction_sets() noexcept { return 1; }
#endif

}  // namespace motley::machine

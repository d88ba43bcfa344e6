#if defined(__x86_64__)
#include "codec/kernels_loops.h"

namespace motley::codec {

constinit const Kernels kAvx512 = make_kernels("avx512");

}  // namespace motley::codec
#endif

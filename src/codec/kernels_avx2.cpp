#if defined(__x86_64__)
#include "codec/kernels_loops.h"

namespace motley::codec {

constinit const Kernels kAvx2 = make_kernels("avx2");

}  // namespace motley::codec
#endif

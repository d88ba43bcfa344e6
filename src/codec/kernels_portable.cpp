#include "codec/kernels_loops.h"

namespace motley::codec {

#if defined(__aarch64__)
constinit const Kernels kPortable = make_kernels("neon");
#else
constinit const Kernels kPortable = make_kernels("portable");
#endif

}  // namespace motley::codec
